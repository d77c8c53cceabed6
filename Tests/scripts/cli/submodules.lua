-- A part of the module is made at first use, and is the same table by each of its names.
local check = require "check"
local flow = require "flow"

check.equal(rawget(flow, "testing"), nil)
check.equal(flow.testing, require "flow.testing")
check.equal(flow.testing, require "flowlua.testing")
check.equal(rawget(flow, "testing"), flow.testing)
check.equal(flow.nothing, nil)
check.equal(pcall(require, "flow.nothing"), false)

-- Workers have only the parts that work there.
local op = flow.op("AWorkerOp", {
  thread = "worker",
  gives = { message = "string" },
  run = function(ctx)
    local own = require "flow"
    local _, err = pcall(function() return own.testing end)
    ctx:set("message", tostring(err))
  end,
})
check.contains(op:run().data.message, "flow.testing isn't there in a worker")
