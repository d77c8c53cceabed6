-- In a test, an op that is replaced is undone by its replacement only.
local flow, testing, check = require "flow", require "flow.testing", require "check"

local undone = {}
local CreateOp = flow.op("CreateOp", {
  run = function() error "not in a test" end,
  undo = function() undone[#undone + 1] = "real" end,
})
local f = flow.new("f"):add(CreateOp):add_grouped(CreateOp, { input = "list", as = "item" })
  :add(flow.op("FailOp", function(ctx) ctx:fail("boom") end))

local run = testing.run(f, { data = { list = { 1 } }, replace = { CreateOp = function() end } })
check.equal(run.error.message, "boom")
check.same(undone, {})

local FakeOp = flow.op("FakeOp", {
  run = function() end,
  undo = function(ctx) undone[#undone + 1] = "fake " .. ctx.name end,
})
run = testing.run(f, { data = { list = { 1 } }, replace = { CreateOp = FakeOp } })
check.equal(run.error.message, "boom")
check.same(undone, { "fake CreateOp #1", "fake CreateOp" })
