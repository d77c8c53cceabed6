-- Secret items are plain for the op and redacted in every line, and outputs may be secret.
local flow, check = require "flow", require "check"
local UseOp = flow.op("UseOp", {
  needs = { token = "string" }, gives = { url = "string" },
  run = function(ctx)
    local token = ctx:get("token")
    check.equal(token:sub(1, 6), "token-")
    ctx:log("with " .. token)
    if token == "token-2" then ctx:fail("bad " .. token) end
    ctx:set("url", flow.secret("url-of-" .. token))
  end,
})
local run = flow.new("group"):data { tokens = { flow.secret("token-1"), flow.secret("token-2") } }
  :add_grouped(UseOp, { input = "tokens", output = "urls", failures = "failed", allow_failure = true }):run()
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
tokens: {<redacted>, <redacted>}
T [FlowArrayGroupDispatcher] group created: 2
T [UseOp #1] WillStart
T [UseOp #1] with <redacted>
T [UseOp #1] DidFinish: successfully
T [UseOp #2] WillStart
T [UseOp #2] with <redacted>
T [UseOp #2] DidFinish: withError: bad <redacted>
T [FlowArrayGroupDispatcher] all finished. output size: 1
T [DataBucket] add for urls: <redacted>
T [DataBucket] add for failed: {{error = [group/UseOp #2] bad <redacted>, index = 2, input = <redacted>}}
T [DataBucket] end with:
tokens: {<redacted>, <redacted>}
urls: <redacted>
failed: {{error = [group/UseOp #2] bad <redacted>, index = 2, input = <redacted>}}
Flow isSuccess: true
======    Ending    ======
]])
check.same(run.data.urls, { "url-of-token-1" })
check.equal(tostring(run.data.failed[1].input), "<redacted>")
-- A list that is secret as a whole.
run = flow.new("whole"):data { tokens = flow.secret { "token-1" } }
  :add_grouped(UseOp, { input = "tokens", output = "urls" }):run()
assert(run.ok, run.error)
check.lacks(run:summary(), "token-1")
