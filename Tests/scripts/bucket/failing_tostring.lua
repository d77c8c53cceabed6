-- A value whose __tostring fails can be stored and read.
local flow, check = require "flow", require "check"
local bad = setmetatable({}, { __tostring = function() error("no text") end })
local worse = setmetatable({}, {
  __index = error, __pairs = error, __len = error, __eq = error, __tostring = function() return {} end,
})
local run = flow.new("bad"):data { given = bad }:add(flow.op("SetOp", function(ctx)
  ctx:set("bad", bad)
  ctx:set("worse", worse)
  assert(rawequal(ctx:get("worse"), worse))
end)):run()
check.equal(run.ok, true)
assert(rawequal(run.data.bad, bad) and rawequal(run.data.given, bad))
check.contains(run:summary(), "add for bad: ", "add for worse: ")
