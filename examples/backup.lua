-- A backup: packs a folder, uploads the archive in parts, four at a time, has the server check it,
-- and removes old ones. Only one runs at a time; after a kill the next start continues with the
-- parts that are missing, because the script keeps its runs.
--
--   scripts/flowlua examples/backup.lua FOLDER URL    backs FOLDER up to a server
--   scripts/flowlua examples/backup.lua               shows it with a server of its own
local flow = require "flow"
local fs = flow.fs

local source, url = arg[1], arg[2]
local spool = source and source .. ".spool" or fs.temp_dir()
fs.mkdir(spool)
local here = arg[0]:match "^(.*)/" or "."
local server <close> = not source
  and flow.exec({ "python3", "-B", here .. "/servers/backup.py" }, { stdin = "pipe" }) or nil
if server then
  source, url = fs.temp_dir(), server:lines()()
  for i = 1, 5 do fs.write(("%s/%d.txt"):format(source, i), ("line %d\n"):format(i):rep(500)) end
end
flow.keep { resume = true, store = spool .. "/.flowlua" }
local _ <close> = fs.lock(spool .. "/lock", { wait = false })

local part_size <const> = 8192
local api = flow.http.client { base = url, timeout = 60 }
local retry = { attempts = 5, delay = 0.1, factor = 2, jitter = 0.2 }

local PackOp = flow.op("PackOp", {
  needs = { folder = "string", archive = "string" },
  gives = { archive = "file", sha256 = "string", parts = "table[]" },
  run = function(ctx)
    local archive = ctx:get "archive"
    flow.exec { "tar", "--create", "--file", archive, "-C", ctx:get "folder", "." }:await()
    local parts, size = {}, fs.stat(archive).size
    for from = 0, size - 1, part_size do
      local count = math.min(part_size, size - from)
      parts[#parts + 1] = { number = #parts + 1, from = from, size = count }
    end
    ctx:set("archive", archive)
    ctx:set("sha256", fs.hash(archive))
    ctx:set("parts", parts)
  end,
})

local PutOp = flow.op("PutOp", {
  needs = { part = "table", archive = "file", name = "string" }, primary_input = "part",
  retry = retry,
  run = function(ctx)
    local part = ctx:get "part"
    api:put(("/%s/%d"):format(ctx:get "name", part.number),
      { upload = { path = ctx:get "archive", from = part.from, size = part.size } }):await()
  end,
})

local VerifyOp = flow.op("VerifyOp", {
  needs = { name = "string", sha256 = "string" }, retry = retry,
  run = function(ctx)
    local stored = api:post("/" .. ctx:get "name"):await():json()
    if stored.sha256 ~= ctx:get "sha256" then
      ctx:fail("the server has another checksum", { retry = false })
    end
  end,
})

local PruneOp = flow.op("PruneOp", {
  needs = { keep = "integer" }, retry = retry,
  run = function(ctx)
    local names = api:get("/"):await():json()
    for i = 1, #names - ctx:get "keep" do
      api:delete("/" .. names[i]):await()
      print("removed " .. names[i])
    end
  end,
})

local run = flow.new("backup")
  :add(PackOp)
  :add_grouped(PutOp, { input = "parts", max_concurrent = 4 })
  :add(VerifyOp):add(PruneOp)
  :run { folder = source, archive = spool .. "/archive.tar", name = "backup-3", keep = 2 }
if not run.ok then error(run.error, 0) end
print(("%d parts, verified"):format(#run.data.parts))
