-- An op within an item of a group has the names of the items around it in its lines.
local flow, check = require "flow", require "check"

local LeafOp = flow.op("LeafOp", { needs = { n = "integer" }, run = function(ctx)
  if ctx:get "n" == 2 then ctx:fail "no" end
end })
local PlainOp = flow.op("PlainOp", function() end)
local Shard = flow.new("ShardOp"):needs { s = "string" }:data { ns = { 1, 2 } }
  :add(flow.new("Inner"):add(PlainOp)):add_grouped(LeafOp, { input = "ns" })
local run = flow.new("all"):data { shards = { "a", "b" } }:add(PlainOp)
  :add_grouped(Shard, { input = "shards", allow_failure = true,
    label = function(s) return s == "b" and "last" or nil end }):run()

local text = run:summary()
for _, line in ipairs {
  "[PlainOp] WillStart",
  "[ShardOp #1] WillStart",
  "[ShardOp #1/PlainOp] DidFinish: successfully",
  "[ShardOp #1/LeafOp #1] DidFinish: successfully",
  "[ShardOp #2 last/LeafOp #2] DidFinish: withError: no",
  "[ShardOp #2 last] DidFinish: withError: no",
} do
  check.contains(text, "M " .. line)
end
