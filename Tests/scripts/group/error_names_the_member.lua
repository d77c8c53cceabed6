-- The field `op` of an error is the name in the log line, for every kind of error.
local flow, check = require "flow", require "check"
local function op_of(declared, run)
  declared.run = run
  declared.primary_input = "n"
  local result = flow.new("g"):data { list = { 1, 2 } }
    :add_grouped(flow.op("NOp", declared), { input = "list", as = "n", max_concurrent = 1 }):run()
  return result.error.op
end
check.equal(op_of({}, function() error "raised" end), "NOp #1")
check.equal(op_of({}, function(ctx) ctx:fail "failed" end), "NOp #1")
check.equal(op_of({}, function(ctx) ctx:get "missing" end), "NOp #1")
check.equal(op_of({ needs = { x = "string" } }, function() end), "NOp #1")
check.equal(op_of({ gives = { x = "string" } }, function() end), "NOp #1")
