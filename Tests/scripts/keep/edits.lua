-- After an edit only what has changed is executed again, and the log says why.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local text = [[
local factor = 2
local options = { round = true, names = { "a", "b" } }
local helper = require "helper"
local function twice(x) return x * factor end
function shout(x) return x .. "!" end
local MakeOp = flow.op("MakeOp", { gives = { n = "integer" }, run = function(ctx)
  effect "make"
  ctx:set("n", 20) -- the number
end })
local UseOp = flow.op("UseOp", { needs = { n = "integer" }, run = function(ctx)
  effect "use"
  local result = twice(ctx:get "n") + 1
  ctx:set("result", shout(tostring(result)) .. helper.mark .. options.names[1])
end })
local ReadOp = flow.op("ReadOp", function(ctx)
  effect "read"
  ctx:set("copy", ctx:get "result" .. ctx:get "mode")
end)
local ItemOp = flow.op("ItemOp", { needs = { item = "string" }, gives = { size = "integer" }, run = function(ctx)
  effect("item-" .. ctx:get "item")
  ctx:set("size", #ctx:get "item")
end })
local EndOp = flow.op("EndOp", function(ctx) effect "end" ctx:fail "stop" end)
flow.new("work"):data { mode = "x", list = { "one", "two", "three" } }
  :add(MakeOp):add(UseOp):add(ReadOp)
  :add_grouped(ItemOp, { input = "list", output = "sizes", max_concurrent = 2 })
  :add(EndOp):run()
]]
local all = { "make", "use", "read", "item-one", "item-two", "item-three", "end" }

-- Each case: a name, from, to, what executes again besides EndOp, and what the log says of it.
local cases = {
  { "comment", "-- the number", "-- another comment\n\n", {} },
  { "moved lines", "local factor = 2", "\n\n\nlocal factor = 2", {} },
  { "spaces", "ctx:set(\"n\", 20)", "ctx : set ( 'n' ,20 )", {} },
  { "renamed local", "local result = twice(ctx:get \"n\") + 1\n  ctx:set(\"result\", shout(tostring(result))",
    "local r = twice(ctx:get \"n\") + 1\n  ctx:set(\"result\", shout(tostring(r))", {} },
  { "constant", "+ 1", "+ 3", { "use", "read" }, "[UseOp] Again: its code changed (script.lua:" },
  { "number in an upvalue", "local factor = 2", "local factor = 3", { "use", "read" }, "[UseOp] Again: its code changed" },
  { "table in an upvalue", '{ "a", "b" }', '{ "c", "b" }', { "use", "read" }, "[UseOp] Again: its code changed" },
  { "called local function", "return x * factor", "return x * factor + 1", { "use", "read" }, "[UseOp] Again: its code" },
  { "called global function", 'return x .. "!"', 'return x .. "?"', { "use", "read" }, "[UseOp] Again: its code changed" },
  { "code that changes a value", 'ctx:set("n", 20)', 'ctx:set("n", 21)', { "make", "use", "read" }, "[UseOp] Again: <n> differs" },
  { "code that doesn't", 'effect "make"', 'effect("make", 1)', { "make" }, "[MakeOp] Again: its code changed" },
  { "data that is read", 'mode = "x"', 'mode = "y"', { "read" }, "[ReadOp] Again: <mode> differs" },
  { "data that nobody reads", 'mode = "x"', 'mode = "x", other = 1', {} },
  { "op renamed", 'flow.op("UseOp"', 'flow.op("NewOp"', { "use" } },
  { "op inserted", ":add(MakeOp)", ':add(flow.op("NewOp", function() effect "new" end)):add(MakeOp)', { "new" } },
  { "op removed", ":add(ReadOp)", "", {} },
  { "ops reordered", ":add(MakeOp):add(UseOp):add(ReadOp)\n",
    ':add(flow.op("MoreOp", function() end)):add(MakeOp)\n  :add(UseOp):add(ReadOp)', {} },
  { "list reordered", '"one", "two", "three"', '"three", "one", "two"', {} },
  { "item added", '"one", "two", "three"', '"zero", "one", "two", "three"', { "item-zero" } },
  { "item removed", '"one", "two", "three"', '"one", "three"', {} },
  { "item changed", '"two"', '"TWO"', { "item-TWO" }, "[ItemOp #2] Again: <item> differs" },
  { "policies", ":add(UseOp)", ":add(UseOp, { retry = 3, timeout = 9 })", {} },
  { "concurrency", "max_concurrent = 2", "max_concurrent = 3", {} },
}

local function sorted(list)
  local copy = table.move(list, 1, #list, 1, {})
  table.sort(copy)
  return table.concat(copy, " ")
end

local function try(name, edit, again, line, options)
  local script = kept.script(text)
  local module = script.folder .. "/helper.lua"
  flow.fs.write(module, 'local more = require "more"\nreturn { mark = "m" }')
  flow.fs.write(script.folder .. "/more.lua", "return {}")
  script:run { "--keep" }
  check.equal(sorted(script:effects()), sorted(all))
  edit(script, module)
  local log = script:resume(options)
  local wanted = table.move(again, 1, #again, 1, {})
  wanted[#wanted + 1] = "end"
  check.equal(name .. ": " .. sorted(script:effects()), name .. ": " .. sorted(wanted))
  if line and not log:gsub("%(/%S*/", "("):find(line, 1, true) then error(name .. ": no '" .. line .. "' in\n" .. log) end
  return log
end

for _, case in ipairs(cases) do
  local name, from, to, again, line = table.unpack(case)
  try(name, function(script) script:edit(from, to) end, again, line)
end
try("module", function(_, module) flow.fs.write(module, 'return { mark = "n" }') end, { "use", "read" },
  "[UseOp] Again: its code changed")
try("module of a module", function(script) flow.fs.write(script.folder .. "/more.lua", "return { 1 }") end, { "use" },
  "[UseOp] Again: its code changed")
local log = try("trusted", function(script) script:edit("+ 1", "+ 3") end, {}, nil, { "--trust-code" })
check.contains(log, "[UseOp] Kept from run")
check.contains(log, "its code changed, but is trusted")
