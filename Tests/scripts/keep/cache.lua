-- The result of an op with a cache comes from any run of the store with the same code and inputs.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
flow.keep()
local MakeOp = flow.op("MakeOp", { needs = { n = "integer" }, gives = { m = "integer" }, cache = true,
  run = function(ctx) effect("make" .. ctx:get "n") ctx:set("m", ctx:get "n" * 2) end })
local OtherOp = flow.op("OtherOp", function(ctx) effect "other" ctx:set("other", 1) end)
local ReadOp = flow.op("ReadOp", { cache = true, run = function(ctx) effect "read" ctx:set("r", ctx:get "other") end })
local OldOp = flow.op("OldOp", { cache = { expires = 0, version = "a" }, run = function(ctx) effect "old" end })
local data = {}
for i = 1, tonumber(arg[1]) do data[i] = i end
local run = flow.new("work"):add(OtherOp):add(ReadOp):add(OldOp)
  :add_grouped(MakeOp, { input = "list", output = "out" }):run { list = data }
print(table.concat(run.data.out, " "))
]]

local result = script:run { arguments = { "2" } }
check.equal(result.stdout, "2 4\n")
check.contains(result.stderr, "[ReadOp] isn't cached: it has read <other>, which isn't in its 'needs'")
script:expect_effects("other", "read", "old", "make1", "make2")
result = script:run { "--follow", arguments = { "3" } }
check.equal(result.stdout, "2 4 6\n")
check.contains(result.stderr, "[MakeOp #1] Kept from run r")
script:expect_effects("other", "read", "old", "make3")
script:run { "--no-cache", arguments = { "1" } }
script:expect_effects("other", "read", "old", "make1")
script:edit("* 2", "* 3")
check.equal(script:run({ arguments = { "3" } }).stdout, "3 6 9\n")
script:expect_effects("other", "read", "old", "make1", "make2", "make3")
script:edit("cache = true,\n", "cache = { version = 2 },\n")
script:run { arguments = { "1" } }
script:expect_effects("other", "read", "old", "make1")

-- The options that flow.keep takes, and those that it refuses.
local keeps = kept.script [[
flow.keep { resume = true, store = "elsewhere" }
local AOp = flow.op("AOp", function(ctx) effect "a" ctx:set("a", 1) end)
flow.new("work"):add(AOp):add(flow.op("BOp", function(ctx) effect "b" if arg[1] then ctx:fail "no" end end)):run()
]]
keeps:run { arguments = { "x" } }
keeps:run()
keeps:expect_effects("a", "b", "b")
assert(require("flow").fs.exists(keeps.folder .. "/elsewhere/store.sqlite"))
local flow = require "flow"
for _, case in ipairs {
  { { resume = 3 }, "field 'resume': boolean or string expected" },
  { { folder = "x" }, "unknown field 'folder'" },
} do
  check.usage(function() flow.keep(case[1]) end, "keep", case[2])
end
for _, wrong in ipairs { { cache = 3 }, { cache = { expires = -1 } }, { effect = "twice" }, { cache = { key = 1 } } } do
  wrong.run = print
  local ok, message = pcall(flow.op, "Op", wrong)
  assert(not ok and message.message:find("bad argument #2 to 'op'", 1, true), tostring(message))
end
