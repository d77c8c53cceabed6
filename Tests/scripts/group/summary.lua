-- The summary of a group has its lines to the letter and none for data that members set.
local flow, check = require "flow", require "check"
local UploadOp = flow.op("UploadOp", {
  needs = { image = "string" }, gives = { url = "string" },
  run = function(ctx) ctx:log("uploading") ctx:set("url", "url_of_" .. ctx:get("image")) end,
})
check.summary(flow.new("upload"):data { images = { "a", "b" } }
  :add_grouped(UploadOp, flow.dispatcher { input = "images", output = "urls" }):run(), [[
====== Flow Summary ======
T [DataBucket] start with:
images: {a, b}
T [FlowArrayGroupDispatcher] group created: 2
T [UploadOp #1] WillStart
T [UploadOp #1] uploading
T [UploadOp #1] DidFinish: successfully
T [UploadOp #2] WillStart
T [UploadOp #2] uploading
T [UploadOp #2] DidFinish: successfully
T [FlowArrayGroupDispatcher] all finished. output size: 2
T [DataBucket] add for urls: {url_of_a, url_of_b}
T [DataBucket] end with:
images: {a, b}
urls: {url_of_a, url_of_b}
Flow isSuccess: true
======    Ending    ======
]])
