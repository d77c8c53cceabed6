-- Runs started by an op know the secrets of the op's run.
local flow, check = require "flow", require "check"
local child
local TellOp = flow.op("TellOp", function(ctx, text) ctx:log("the password is " .. text) end)
local StartOp = flow.op("StartOp", function(ctx)
  child = TellOp(ctx:get("password")):run()
end)
local run = StartOp:run { password = flow.secret("open sesame") }
check.equal(run.ok, true)
check.contains(child:summary(), "[TellOp] the password is <redacted>")
check.lacks(child:summary(), "sesame")
