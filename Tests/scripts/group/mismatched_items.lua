-- Items are checked against the needs of the op.
local flow, check = require "flow", require "check"
local called = 0
local TextOp = flow.op("TextOp", {
  needs = { text = "string" }, gives = { size = "integer" },
  run = function(ctx) called = called + 1 ctx:set("size", #ctx:get("text")) end,
})
local run = flow.new("text"):data { list = { "ab", 12, "cde" } }
  :add_grouped(TextOp, { input = "list", output = "sizes", allow_failure = true, failures = "bad" }):run()
assert(run.ok, run.error)
check.equal(called, 2)
check.same(run.data.sizes, { 2, 3 })
check.equal(run.data.bad[1].error.kind, "mismatched_input")
check.contains(run:summary(), "[TextOp #2] DidFinish: withMismatchInputDataType: " ..
  "<text> in data bucket is <12> with type <integer>, but NOT type <string>.\n")
