-- The digest of an op's code stays the same when only its looks change, in any process, and changes with what it does.
local code = require "code"

local plain = [[
local limit, names = 3, { "a", "b", deep = { x = 1.5 } }
local function double(n) return 2 * n end
function shout(text) return text:upper() end
op = flow.op("CountOp", function(ctx)
  local n = ctx:get "n"
  ctx:set("n", double(n) + limit + 10)
  for i, name in ipairs(names) do ctx:log(shout(name), i) end
end)
]]

local function edited(from, to)
  local first, last = plain:find(from, 1, true)
  return plain:sub(1, first - 1) .. to .. plain:sub(last + 1)
end

code.same(plain, plain, "the same text")
code.same(plain, "-- A comment.\n" .. plain, "a comment above")
code.same(plain, edited("  local n", "  -- A comment.\n  local n"), "a comment within")
code.same(plain, edited("local limit", "\n\n\nlocal limit"), "moved lines")
code.same(plain, edited("return 2 * n", "\n\nreturn 2*n\n"), "spacing in a called function")
code.same(plain, (plain:gsub("%f[%w]n%f[%W]", "number"):gsub('"number"', '"n"')), "a renamed parameter")
code.same(plain, (plain:gsub("double", "twice"):gsub("limit", "most"):gsub("names", "words")), "renamed upvalues")
code.same(plain, edited('"CountOp"', '"OtherOp"'), "the op's own name")
code.same(plain, edited("{ \"a\", \"b\", deep = { x = 1.5 } }", "{ deep = { x = 1.5 }, \"a\", \"b\" }"), "order of fields")
code.same(plain, plain .. "local other = 1\nfunction unused() return other end", "other code of the script")

code.differs(plain, edited("+ 10", "+ 11"), "a constant")
code.differs(plain, edited("+ 10", "- 10"), "an operator")
code.differs(plain, edited("+ 10", "+ 10.0"), "a float for an integer")
code.differs(plain, edited("limit, names = 3", "limit, names = 4"), "an upvalue")
code.differs(plain, edited("x = 1.5", "x = 1.25"), "a table of an upvalue")
code.differs(plain, edited("2 * n", "3 * n"), "a called local function")
code.differs(plain, edited("text:upper()", "text:lower()"), "a called global function")
code.differs(plain, edited("  local n", "  if not ctx then return end\n  local n"), "one more statement")

-- Globals that hold anything else count too, and so does what they use.
local global = [[
settings = { retries = 2 }
function inner() return settings.retries end
function outer() return inner() end
op = flow.op("GlobalOp", function(ctx) ctx:log(outer()) end)
]]
code.same(global, (global:gsub("settings = ", "-- Two.\nsettings = ")))
code.differs(global, (global:gsub("= 2", "= 3")), "a table in a global")
code.differs(global, (global:gsub("return inner%(%)", "return inner() + 1")), "a global function of a global function")
code.same(global, global .. "other = 1", "a global that isn't used")
code.same(global, (global:gsub("function inner", "local x = 1; function inner")), "a local that isn't used")

-- A value that is set between the making of the op and the digest counts.
code.differs(plain, plain .. "limit = 4", "an upvalue that is assigned later")

-- The words of the command line count where they are read.
local check = require "check"
local reads = 'op = flow.op("ArgOp", function(ctx) ctx:log(arg[1]) end)'
check.equal(code.digest(reads, { arguments = { "a" } }), code.digest(reads, { arguments = { "a" } }))
check.equal(code.digest(reads, { arguments = { "a" } }) ~= code.digest(reads, { arguments = { "b" } }), true)
check.equal(code.digest(plain, { arguments = { "a" } }), code.digest(plain, { arguments = { "b" } }))
