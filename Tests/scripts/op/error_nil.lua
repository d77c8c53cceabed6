-- error() without a value fails an op.
local flow, check = require "flow", require "check"
for _, fail in ipairs { function() error() end, function() error(nil) end } do
  local run = flow.op("FailOp", fail):run()
  check.equal(run.ok, false)
  check.equal(run.error.kind, "error")
  check.equal(run.error.cause, nil)
  check.equal(type(run.error.message), "string")
  check.contains(run:summary(), "[FailOp] DidFinish: withError: ", "Flow isSuccess: false")
end
