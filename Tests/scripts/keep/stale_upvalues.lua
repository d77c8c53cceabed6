-- The data of a flow, a settled task and other objects that an op refers to count for its cache, over processes.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
flow.keep()
local V = os.getenv "V"
local InnerOp = flow.op("InnerOp", { needs = { version = "string" }, gives = { out = "string" },
  run = function(ctx) ctx:set("out", "built " .. ctx:get "version") end })
local build = flow.new("build"):data { version = V }:add(InnerOp)
local BuildOp = flow.op("BuildOp", { cache = true, gives = { image = "string" },
  run = function(ctx) effect "build" ctx:set("image", build:run().data.out) end })
local settings = flow.resolved(V)
local UseOp = flow.op("UseOp", { cache = true, gives = { x = "string" },
  run = function(ctx) effect "use" ctx:set("x", settings:await()) end })
local InputOp = flow.op("InputOp", { cache = true, needs = { t = "table" }, gives = { b = "string" },
  run = function(ctx) effect "input" ctx:set("b", ctx:get("t").b) end })
local pending = flow.context()
local WaitsOp = flow.op("WaitsOp", { cache = true, run = function(ctx) effect "wait" if pending then ctx:set("x", 1) end end })
WaitsOp:run()
WaitsOp:run()
print(BuildOp:run({}).data.image, UseOp:run({}).data.x,
  InputOp:run({ t = setmetatable({ a = 1 }, { __index = { b = V } }) }).data.b)
]]
local function run(value, stdout)
  local result = script:run { environment = { V = value } }
  check.equal(result.stdout, stdout)
  local why = "[WaitsOp] isn't kept, so a resumed run executes it again: its code can't be compared: it refers to 'task"
  check.contains(result.stderr, why)
  check.equal(select(2, result.stderr:gsub("WaitsOp", "")), 1)
end
run("17", "built 17\t17\t17\n")
script:expect_effects("build", "use", "input", "wait", "wait")
run("17", "built 17\t17\t17\n")
script:expect_effects("wait", "wait")
run("18", "built 18\t18\t18\n")
script:expect_effects("build", "use", "input", "wait", "wait")
