-- An op works alone and in a group.
local flow, check = require "flow", require "check"
local UploadOp = flow.op("UploadOp", {
  needs = { image = "string" }, gives = { url = "string" },
  run = function(ctx) ctx:set("url", "url_of_" .. ctx:get("image")) end,
})
local run = flow.new("both"):data { image = "one", images = { "a", "b" } }
  :add(UploadOp):add_grouped(UploadOp, { input = "images", output = "urls" }):add(UploadOp):run()
assert(run.ok, run.error)
check.equal(run.data.url, "url_of_one")
check.same(run.data.urls, { "url_of_a", "url_of_b" })
