-- One op for a single image, used for a list of them: three at a time, results in order.
local flow = require "flow"

local UploadSingleImageOp = flow.op("UploadSingleImageOp", {
  doc = "Uploads one image and gives its address.",
  needs = { targetImageForUpload = "string" },
  gives = { uploadedImageUrl = "string" },
  run = function(ctx)
    flow.sleep(0.05 * ctx.index) -- the first image is the smallest
    ctx:log("simulation of upload single image callback")
    ctx:set("uploadedImageUrl", "url_of_" .. ctx:get("targetImageForUpload"))
  end,
})

local upload = flow.new("upload")
  :data { images = { "a", "b", "c", "d" } }
  :add_grouped(UploadSingleImageOp, flow.dispatcher {
    input = "images",
    output = "imageURLs",
    max_concurrent = 3,
    allow_failure = false,
  })
  :did_finish(function(run) io.write(run:summary()) end)

local run = upload:run()
print(table.concat(run.data.imageURLs, " "))
