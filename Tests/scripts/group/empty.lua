-- A group fails on an empty list unless that is allowed.
local flow, check = require "flow", require "check"
local AnOp = flow.op("AnOp", { needs = { n = "any" }, gives = { out = "any" }, run = function() end })
local function run_with(options)
  options.input = "images"
  return flow.new("empty"):data { images = {} }:add_grouped(AnOp, options):run()
end
local run = run_with {}
check.equal(run.ok, false)
check.equal(run.error.kind, "insufficient_input")
check.contains(run:summary(),
  "[Group] no operation to run for group; please make sure the input data: <images> is not empty\n")
run = run_with { allow_failure = true }
check.equal(run.ok, false)
run = run_with { allow_empty = true, output = "outs" }
assert(run.ok, run.error)
check.same(run.data.outs, {})
