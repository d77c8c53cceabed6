-- A login, a profile, and uploads of images, three at a time, at a server that the example starts.
-- One upload is refused at first and tried again; an unknown account ends the flow at its first op.
local flow = require "flow"

local here = arg[0]:match "^(.*)/" or "."
local server <close> =
  flow.exec({ "python3", "-B", here .. "/servers/login.py" }, { stdin = "pipe" })
local api = flow.http.client { base = server:lines()() }

local LoginOp = flow.op("LoginOp", {
  needs = { email = "string", password = "string" },
  gives = { accessToken = "string" },
  run = function(ctx)
    local login = { email = ctx:get "email", password = ctx:get "password" }
    local res = api:post("/login", { json = login }):await()
    ctx:set("accessToken", flow.secret(res:json().accessToken))
  end,
})

local LoadProfileOp = flow.op("LoadProfileOp", {
  needs = { accessToken = "string" },
  gives = { name = "string", images = "string[]" },
  run = function(ctx)
    local profile = api:get("/profile", { auth = ctx:get "accessToken" }):await():json()
    ctx:set("name", profile.name)
    ctx:set("images", profile.images)
  end,
})

local UploadSingleImageOp = flow.op("UploadSingleImageOp", {
  doc = "Uploads one image and gives its address.",
  needs = { targetImageForUpload = "string", accessToken = "string" },
  gives = { uploadedImageUrl = "string" },
  primary_input = "targetImageForUpload",
  retry = 3,
  run = function(ctx)
    local name = ctx:get "targetImageForUpload"
    local res = api:put("/images/" .. name, {
      auth = ctx:get "accessToken",
      files = { image = { body = "the picture " .. name, name = name, type = "image/png" } },
    }):await()
    ctx:set("uploadedImageUrl", res:json().url)
  end,
})

local publish = flow.new("publish")
  :add(LoginOp)
  :add(LoadProfileOp)
  :add_grouped(UploadSingleImageOp, {
    input = "images", output = "imageURLs", max_concurrent = 3, allow_failure = false,
  })
  :did_finish(function(run) print(run:summary()) end)

local password = flow.secret "123456"
local run = publish:run { email = "test@gmail.com", password = password }
print(table.concat(run.data.imageURLs, " "), "\n")

run = publish:run { email = "nobody@gmail.com", password = password }
print(run.ok, run.error.kind, run.error.status, run.error.body)
