-- run: 20
-- run: 20 graph
-- Where does the time go? Photos are scaled, four at a time, and uploaded over a line that drops
-- now and then; then pages are made, a cache is warmed, and the album is announced. It is shown by
--   scripts/flowlua --virtual-clock --timeline publish.html examples/publish.lua
-- An argument N makes it N times as fast. As a graph, `publish.lua 1 graph`, it takes less time:
-- each photo is uploaded as soon as it is scaled, and the pages are made meanwhile.
local flow = require "flow"

local speed = tonumber(arg[1]) or 1
local function work(seconds) flow.sleep(seconds / speed) end

local photos = {}
for number = 1, 32 do
  photos[number] = { name = ("photo-%02d.jpg"):format(number), megapixels = 8 + number * 7 % 12 }
end
-- Two are panoramas.
photos[5].megapixels, photos[19].megapixels = 48, 64

local ListOp = flow.op("ListOp", {
  gives = { photos = "table" },
  run = function(ctx)
    work(0.4)
    ctx:set("photos", photos)
  end,
})

local ScaleOp = flow.op("ScaleOp", {
  needs = { photo = "table" },
  gives = { scaled = "table" },
  run = function(ctx)
    local photo = ctx:get "photo"
    work(photo.megapixels * 0.04)
    ctx:set("scaled", photo)
  end,
})

-- The line drops for some photos. One is refused, which another attempt wouldn't change.
local UploadOp = flow.op("UploadOp", {
  needs = { photo = "table" },
  retry = { attempts = 4, delay = 0.6 / speed, factor = 2 },
  run = function(ctx)
    local photo = ctx:get "photo"
    work(0.25 + photo.megapixels * 0.01)
    if ctx.index % 13 == 7 and ctx.attempt < 3 then ctx:fail "connection reset" end
    if ctx.index == 24 and ctx.attempt < 2 then ctx:fail "timed out" end
    if photo.megapixels > 60 then ctx:fail("413 too large", { retry = false }) end
  end,
})

local PagesOp = flow.op("PagesOp", { needs = { photos = "table" }, run = function() work(1.1) end })
local WarmCacheOp = flow.op("WarmCacheOp", function() work(1.9) end)
local AnnounceOp = flow.op("AnnounceOp", function() work(0.3) end)

local function name(photo) return photo.name end

local scaling = {
  input = "photos", as = "photo", output = "scaled", max_concurrent = 4, label = name,
}
local uploading = {
  input = "scaled", as = "photo", max_concurrent = 6, allow_failure = true, label = name,
}
local publish
if arg[2] == "graph" then
  publish = flow.graph("publish")
    :add(ListOp)
    :add_grouped(ScaleOp, scaling)
    :add_grouped(UploadOp, uploading)
    :add(PagesOp)
    :add(WarmCacheOp, { after = { UploadOp, PagesOp } })
    :add(AnnounceOp, { after = WarmCacheOp })
else
  publish = flow.new("publish")
    :add(ListOp)
    :add_grouped(ScaleOp, scaling)
    :add_grouped(UploadOp, uploading)
    :add_parallel(PagesOp, WarmCacheOp)
    :add(AnnounceOp)
end
local run = publish:run()

local retried = 0
for _, event in ipairs(run:events()) do
  if event.kind == "retry" then retried = retried + 1 end
  if event.kind == "finish" and event.index == 19 then print(event.path, event.message) end
end
print(run.ok, "attempts repeated: " .. retried)
