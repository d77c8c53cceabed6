-- The files of the modules that an op's code uses are a part of its code, and so are the modules that these require.
local check, code = require "check", require "code"

local script = [[
local first = require "first"
op = flow.op("ModuleOp", function(ctx) ctx:log(first.name()) end)
]]
local files = {
  ["first.lua"] = [[
    local second = require("second")
    return { name = function() return second .. "!" end }
  ]],
  ["second.lua"] = 'local ok, third = pcall(require, "third")\nreturn "second" .. third',
  ["third.lua"] = "return require [[fourth]]",
  ["fourth.lua"] = "require 'first_of_all' return 'fourth'",
  ["first_of_all.lua"] = "return 1",
  ["other.lua"] = "return 2",
}

local function digest(text, changed)
  local all = {}
  for name, content in pairs(files) do all[name] = content end
  for name, content in pairs(changed or {}) do all[name] = content end
  return code.digest(text, { files = all })
end

local before = digest(script)
check.equal(digest("\n" .. script), before)
for _, name in ipairs { "first.lua", "second.lua", "third.lua", "fourth.lua", "first_of_all.lua" } do
  check.equal(digest(script, { [name] = files[name] .. " -- changed" }) ~= before, true, name)
end
check.equal(digest(script, { ["other.lua"] = "return 3" }), before, "a module that isn't required")

-- A function of a module, taken out of it.
local field = 'local name = require "first".name\nop = flow.op("FieldOp", function(ctx) ctx:log(name()) end)'
check.equal(digest(field), digest(field))
check.equal(digest(field, { ["fourth.lua"] = "return 'other'" }) ~= digest(field), true)

-- A module that is required while the op runs.
local within = 'op = flow.op("WithinOp", function(ctx) ctx:log(require "first".name()) end)'
check.equal(digest(within), digest(within))
check.equal(digest(within, { ["third.lua"] = "return 3" }) ~= digest(within), true)
check.equal(digest(within, { ["other.lua"] = "return 3" }), digest(within))

-- Without a file, what a module holds counts as any other value.
local made = [[
package.loaded.made = { limit = 3 }
local made = require "made"
op = flow.op("MadeOp", function(ctx) ctx:log(made.limit) end)
]]
check.equal(digest(made), digest("\n" .. made))
check.equal(digest(made) ~= digest((made:gsub("3", "4"))), true)

-- Libraries are known by their names.
local standard = [[
local insert, string, flow = table.insert, string, flow
op = flow.op("StandardOp", function(ctx) insert({}, string.format("%s", flow)) print(os.time()) end)
]]
check.equal(digest(standard), digest(standard))
check.equal(digest(standard) ~= digest((standard:gsub("table.insert", "table.remove"))), true)

-- A function that the script has put into a library isn't the library's.
local own = [[
function string.shout(text) return text:upper() .. "!" end
local shout = string.shout
op = flow.op("OwnOp", function(ctx) ctx:log(shout "a") end)
]]
check.equal(digest(own), digest("\n" .. own))
check.equal(digest(own) ~= digest((own:gsub("!", "?"))), true)
