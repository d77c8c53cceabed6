-- will_start and did_finish are called once each, in order, and did_finish receives the settled run.
local flow, check = require "flow", require "check"
local order = {}
local function note(text) order[#order + 1] = text end
local run = flow.new("callbacks")
  :will_start(function(run) note("will " .. run.name) end)
  :will_start(function() note("will again") end)
  :did_finish(function(run) note("did " .. tostring(run.ok)) check.contains(run:summary(), "Flow isSuccess: true") end)
  :did_finish(function() note("did again") end)
  :add(flow.op("AnOp", function() note("op") flow.sleep(0.001) end))
  :start()
run:wait()
note("waited")
check.same(order, { "will callbacks", "will again", "op", "did true", "did again", "waited" })
