-- The common parts of tests of ops that don't end by themselves.
local flow, check = require "flow", require "check"
local hostile = {}

-- How long an op may run after its deadline, in seconds of the processor: on a busy machine the clock on
-- the wall says little. Debug builds and sanitizers are slow.
hostile.slack = 20

-- Runs body as an op with a timeout in the middle of a flow, and again in a flow that has the timeout.
-- Both times it ends soon after its deadline, with the line that belongs to it, and nothing of it
-- gets in the way of ops that follow. `grace` is what the body may take besides, in seconds.
function hostile.stop(body, grace)
  local limit = 0.03 + hostile.slack + (grace or 0)
  local finished
  local HostileOp = flow.op("HostileOp", { timeout = 0.03, grace = grace, run = body })
  local CloseOp = flow.op("CloseOp", function(ctx)
    local co = coroutine.wrap(function() coroutine.yield(1) return 2 end)
    flow.sleep(0.001)
    finished = pcall(error) == false and co() + co()
    ctx:log("closed")
  end)
  local function ended(op, lines)
    local begin = os.clock()
    local run = op:run()
    local took = os.clock() - begin
    check.equal(run.error.kind, "timeout")
    check.equal(run.error.message, "timed out after 0.03s")
    check.equal(finished, 3)
    if took > limit then error("it took " .. took .. " s of the processor", 3) end
    check.summary(run, lines)
  end

  ended(flow.new("own"):add(HostileOp):add_finally(CloseOp), [[
====== Flow Summary ======
T [DataBucket] start with:
T [HostileOp] WillStart
T [HostileOp] DidFinish: timedOut after 0.03s
T [CloseOp] WillStart
T [CloseOp] closed
T [CloseOp] DidFinish: successfully
T [DataBucket] end with:
Flow isSuccess: false
======    Ending    ======
]])

  finished = nil
  local PlainOp = flow.op("PlainOp", { grace = grace, run = body })
  local inner = flow.new("inner"):add(PlainOp)
  ended(flow.new("outer"):add(inner, { timeout = 0.03 }):add_finally(CloseOp), [[
====== Flow Summary ======
T [DataBucket] start with:
T [inner] WillStart
T [PlainOp] WillStart
T [PlainOp] DidFinish: cancelled: timed out after 0.03s
T [inner] DidFinish: timedOut after 0.03s
T [CloseOp] WillStart
T [CloseOp] closed
T [CloseOp] DidFinish: successfully
T [DataBucket] end with:
Flow isSuccess: false
======    Ending    ======
]])
end

return hostile
