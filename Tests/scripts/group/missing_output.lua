-- An item's missing output is an error, as if it were declared.
local flow, check = require "flow", require "check"
local NothingOp = flow.op("NothingOp", { needs = { n = "integer" }, run = function() end })
local run = flow.new("nothing"):data { list = { 1 } }
  :add_grouped(NothingOp, { input = "list", output = "outs", collect = "url" }):run()
check.equal(run.ok, false)
check.equal(run.error.kind, "missing_output")
check.contains(run:summary(), "[NothingOp #1] DidFinish: withMissingOutputData: can't find <url> in data bucket\n")
