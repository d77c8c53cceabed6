-- Tests of machines begin with any state, and real programs in tests take real time.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local machine = flow.machine {
  name = "count", start = "add",
  emit = function(result) if result.n < 3 then return "again" end end,
  flow.step("add", {
    run = function(state) flow.sleep(60); return { n = state.n + 1 } end,
    flow.on("again", flow.stay()), flow.next(flow.forward "end"),
  }),
  flow.step("end", { run = function(state) return state end }),
}
local run = testing.run(machine, { data = { n = 0 } })
check.equal(run.result.n, 3)
check.equal(run.duration, 180.0)
local steps = {}
for _, event in ipairs(run:events()) do
  if event.kind == "transition" then steps[#steps + 1] = event.time end
end
check.same(steps, { 60.0, 120.0, 180.0 })

local program = testing.run(flow.op("ProgramOp", function(ctx)
  local task = flow.exec { "sh", "-c", "sleep 0.05; printf out" }
  ctx:set("out", task:await().stdout)
  flow.sleep(1000)
end), { exec = "real" })
assert(program.ok, program.error)
check.equal(program.data.out, "out")
check.equal(program.duration, 1000.0)
-- One outside doesn't keep the clock from jumping.
local outside = flow.exec { "sleep", "0.1" }
check.equal(testing.run(flow.ops.SleepOp(1e6)).duration, 1e6)
assert(outside:await().status == 0)
-- A leftover program is stopped.
local left
assert(testing.run(flow.op("LeaveOp", function() left = flow.exec { "sleep", "100" } end),
  { exec = "real" }).ok)
check.equal(left.state, "cancelled")
