-- Missing declared outputs fail the op after run.
local flow, check = require "flow", require "check"
local run = flow.op("UploadOp", { gives = { url = "string" }, run = function() end }):run()
check.equal(run.error.kind, "missing_output")
check.equal(run.error.message, "can't find <url> in data bucket")
check.contains(run:summary(), "[UploadOp] DidFinish: withMissingOutputData: can't find <url> in data bucket\n")

run = flow.op("UploadOp", { gives = { url = "string" }, run = function(ctx) ctx:set("url", 1.5) end }):run()
check.equal(run.error.kind, "mismatched_output")
check.contains(run:summary(), "[UploadOp] DidFinish: withMismatchOutputDataType: " ..
  "<url> in data bucket is <1.5> with type <float>, but NOT type <string>.\n")

assert(flow.op("UploadOp", { gives = { url = "string?" }, run = function() end }):run().ok)
