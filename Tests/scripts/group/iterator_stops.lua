-- A group stops with its iterator: no item starts after a cancel, tasks of the iterator end with the run, and others get their turns.
local flow, check = require "flow", require "check"

-- The iterator cancels its run.
local done, n, run = {}, 0, nil
local NoteOp = flow.op("NoteOp", { needs = { n = "integer" }, run = function(ctx) done[#done + 1] = ctx:get "n" end })
run = flow.new("f"):add_grouped(NoteOp, { input = "ns" }):start { ns = function()
  n = n + 1
  if n == 1 then flow.sleep(1) end
  if n == 2 then run:cancel() end
  return n
end }
run:wait()
check.equal(run.state, "cancelled")
check.same(done, { 1 })

-- An endless one that never waits.
n = 0
run = flow.new("f"):add_grouped(NoteOp, { input = "ns" }):start { ns = function() n = n + 1 return n end }
flow.sleep(0)
run:cancel()
run:wait()
check.equal(run.state, "cancelled")

-- Its tasks end with the run.
local ended
local function spawning()
  n = n + 1
  if n == 1 then
    flow.spawn(function()
      local _ <close> = setmetatable({}, { __close = function() ended = flow.now() end })
      flow.sleep(100)
    end)
  end
  if n < 3 then return n end
end
n = 0
local begun = flow.now()
check.equal(flow.new("f"):add_grouped(NoteOp, { input = "ns" }):run({ ns = spawning }).ok, true)
check.same({ ended, flow.now() }, { begun, begun })
n = 0
run = flow.new("f"):add_grouped(NoteOp, { input = "ns" }):add(flow.op("FailOp", function() error "no" end))
  :run { ns = spawning }
check.equal(run.ok, false)
check.equal(ended, flow.now())
