-- The full form of an op accepts all fields, and the summary shows their effect to the letter.
local flow, check = require "flow", require "check"
local UploadOp = flow.op("UploadOp", {
  doc = "Uploads one image.",
  needs = { image = "string", quality = "integer?" },
  gives = { url = "string" },
  primary_input = "image", primary_output = "url",
  run = function(ctx) ctx:set("url", "url_of_" .. ctx:get("image", "string")) end,
})
check.summary(flow.new("upload"):data { image = "a.png" }:add(UploadOp):run(), [[
====== Flow Summary ======
T [DataBucket] start with:
image: a.png
T [UploadOp] WillStart
T [DataBucket] add for url: url_of_a.png
T [UploadOp] DidFinish: successfully
T [DataBucket] end with:
image: a.png
url: url_of_a.png
Flow isSuccess: true
======    Ending    ======
]])
