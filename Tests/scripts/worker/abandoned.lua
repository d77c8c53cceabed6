-- A worker inside a C function that can't be stopped is abandoned, and its op ends.
-- Another worker does its remaining work, and the end of the program doesn't wait for it.
-- clock: real: the virtual clock stands still while a worker is busy
local flow = require "flow"
local check = require "check"
local function stuck() return (("x"):rep(100000)):find(".-.-.-.-b") end
local StuckOp = flow.op("StuckOp", { thread = "worker", timeout = 0.02, run = stuck })
local begin = flow.now()
local run
-- On a busy machine it may be stopped before it has come to the C function.
for _ = 1, 50 do
  run = StuckOp:run()
  check.equal(run.error.kind, "timeout")
  if run:summary():find("given up", 1, true) then break end
end
check.contains(run:summary(), "[StuckOp] the worker was busy in a C function that can't be stopped, and was given up")
assert(flow.now() - begin < 60, flow.now() - begin)
-- Another one takes its place.
local FineOp = flow.op("FineOp", {
  needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker",
  run = function(ctx) ctx:set("m", ctx:get("n") * 2) end,
})
check.equal(FineOp:run { n = 4 }.data.m, 8)
-- Items of a group that were on it are handed out again.
local ns = {}
for i = 1, 30 do ns[i] = i end
local SlowOp = flow.op("SlowOp", {
  needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker",
  run = function(ctx)
    flow.sleep(0.05)
    ctx:set("m", ctx:get("n") * 2)
  end,
})
local group = flow.new("g"):data { ns = ns }
  :add_grouped(SlowOp, { input = "ns", output = "out", max_concurrent = 4 }):start()
flow.sleep(0.01)
local others = {}
for i = 1, 2 do others[i] = StuckOp:start() end
group:wait()
assert(group.ok, group.error and group.error.message)
for i = 1, 30 do check.equal(group.data.out[i], 2 * i) end
for i = 1, 2 do
  others[i]:wait()
  check.equal(others[i].error.kind, "timeout")
end
-- A cancelled group doesn't wait for it either.
local StuckItemOp = flow.op("StuckItemOp", { needs = { n = "integer" }, thread = "worker", run = stuck })
begin = flow.now()
run = flow.new("g"):data { ns = { 1, 2, 3 } }:add(flow.new("in"):add_grouped(StuckItemOp, { input = "ns" }), { timeout = 0.02 }):run()
check.equal(run.error.kind, "timeout")
assert(flow.now() - begin < 60, flow.now() - begin)
-- At the end of the program one is still stuck.
local last = flow.op("StuckOp", { thread = "worker", run = stuck }):start()
flow.sleep(0.01)
last:cancel()
last:wait()
