-- Missing declared inputs fail the op before run is called.
local flow, check = require "flow", require "check"
local called = false
local LoginOp = flow.op("LoginOp", { needs = { email = "string" }, run = function() called = true end })
local NeverOp = flow.op("NeverOp", function() called = true end)
local run = flow.new("login"):data { email_address = "test@gmail.com" }:add(LoginOp):add(NeverOp):run()
check.equal(called, false)
check.equal(run.ok, false)
check.equal(run.error.kind, "insufficient_input")
check.equal(run.error.op, "LoginOp")
check.equal(run.error.message, "can't find <email> in data bucket")
check.equal(tostring(run.error), "[login/LoginOp] " .. run.error.message)
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
email_address: test@gmail.com
T [LoginOp] WillStart
T [LoginOp] DidFinish: withInsufficientInputData: can't find <email> in data bucket
T [DataBucket] end with:
email_address: test@gmail.com
Flow isSuccess: false
======    Ending    ======
]])
