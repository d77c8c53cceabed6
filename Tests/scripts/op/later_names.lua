-- Unknown names of the module are nil.
local flow, check = require "flow", require "check"
local blueprint = flow.new("later")
local AnOp = flow.op("AnOp", function() end)
local run = AnOp:run()
for _, object in ipairs { flow, AnOp, blueprint, run } do
  check.equal(object.nothing, nil)
  check.equal(object[1], nil)
end
