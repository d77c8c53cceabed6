-- The bucket keeps its values alive, and unreachable values are collected.
local flow, check = require "flow", require "check"
local weak = setmetatable({}, { __mode = "v" })
do
  local run = flow.new("keep"):add(flow.op("SetOp", function(ctx)
    ctx:set("t", { 1 })
    weak[1] = ctx:get("t")
    ctx:set("gone", { 2 })
    weak[2] = ctx:get("gone")
    ctx:set("gone", nil)
  end)):add(flow.op("GetOp", function(ctx)
    collectgarbage()
    check.equal(ctx:get("t")[1], 1)
  end)):run()
  assert(run.ok, run.error)
  check.equal(run.data.t[1], 1)
end
for _ = 1, 3 do collectgarbage() end
check.equal(weak[2], nil)
