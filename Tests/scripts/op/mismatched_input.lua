-- A value of another type than declared or requested fails the op.
local flow, check = require "flow", require "check"
local text = "<password> in data bucket is <123456> with type <integer>, but NOT type <string>."
for _, op in ipairs {
  flow.op("LoginOp", { needs = { password = "string" }, run = function() end }),
  flow.op("LoginOp", function(ctx) ctx:get("password", "string") end),
} do
  local run = flow.new("login"):data { password = 123456 }:add(op):run()
  check.equal(run.error.kind, "mismatched_input")
  check.equal(run.error.message, text)
  check.contains(run:summary(), "[LoginOp] DidFinish: withMismatchInputDataType: " .. text .. "\n")
end
