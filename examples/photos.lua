-- run: examples/library $OUT
--
-- A report of all files under a folder as JSON: the SHA-256 of each, eight at a time.
--
--   scripts/flowlua examples/photos.lua DIR FILE
local flow = require "flow"
local fs, json = flow.fs, flow.json

local HashOp = flow.op("HashOp", {
  needs = { path = "string" },
  gives = { photo = "table" },
  run = function(ctx)
    local path = ctx:get "path"
    ctx:set("photo", { path = path, sha256 = fs.hash(path) })
  end,
})

local run = flow.new("photos")
  :data { paths = fs.list(arg[1], { recursive = true, type = "file" }) }
  :add_grouped(HashOp, { input = "paths", output = "photos", max_concurrent = 8 })
  :run()
if not run.ok then error(tostring(run.error), 0) end
json.write(arg[2], run.data.photos, { indent = 2 })
print(("%d files are in %s"):format(#run.data.photos, arg[2]))
