-- Branches: after Step1 the flow continues with the case whose value `target` has, and combine()
-- joins the branches again. One blueprint runs for each target; one has no case.
local flow = require "flow"

local SimplePrintOp = flow.op("SimplePrintOp", function(ctx, message)
  ctx:log(message)
end)

-- Common handling makes the blueprint simpler still.
local function common_will_start(block)
  return function(run)
    if block then block(run) end
    print "Flow Starting..."
  end
end

local function common_did_finish(block)
  return function(run)
    if block then block(run) end
    print(run:summary())
  end
end

local demo_cases = flow.new("demoCases")
  :data { images = { "a", "b", "c", "d", 1 }, target = "A" }
  :add(SimplePrintOp "Step1")
  :case("target", "A")
    :add(SimplePrintOp "Step2A1")
    :add(SimplePrintOp "Step2A2")
  :case("target", "B")
    :add(SimplePrintOp "Step2B1")
    :add(SimplePrintOp "Step2B2")
  :combine()
  :add(SimplePrintOp "Step3")
  :will_start(common_will_start())
  :did_finish(common_did_finish(function(run)
    print("finished early:", run.finished_early)
  end))

demo_cases:run()
demo_cases:run { target = "B" }
demo_cases:run { target = "C" }
