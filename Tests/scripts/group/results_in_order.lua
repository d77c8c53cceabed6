-- Results keep the order of the input, however the items end.
local flow, check = require "flow", require "check"
local UploadOp = flow.op("UploadOp", {
  needs = { image = "string" }, gives = { url = "string" },
  run = function(ctx)
    flow.sleep(0.002 * (5 - ctx.index))
    ctx:set("url", "url_of_" .. ctx:get("image"))
  end,
})
local run = flow.new("upload"):data { images = { "a", "b", "c", "d" } }
  :add_grouped(UploadOp, flow.dispatcher { input = "images", output = "urls", max_concurrent = 4 })
  :run()
assert(run.ok, run.error)
check.same(run.data.urls, { "url_of_a", "url_of_b", "url_of_c", "url_of_d" })
