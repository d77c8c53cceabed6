-- A daemon: it processes the files that appear in a folder, two at a time. SIGTERM makes it take no
-- more and finish those that it has begun. Files whose processing fails are put aside.
--
--   scripts/flowlua examples/spool.lua DIR      processes DIR/*.job until it is stopped
--   scripts/flowlua examples/spool.lua          shows it on a folder of its own, and stops itself
local flow = require "flow"
local fs = flow.fs

local folder = arg[1] or fs.temp_dir()
local _ <close> = fs.lock(folder .. "/lock", { wait = false })      -- one daemon for a folder

local ProcessOp = flow.op("ProcessOp", {
  needs = { path = "string" }, timeout = 10, retry = { attempts = 2, delay = 0.1 },
  run = function(ctx)
    local text = fs.read(ctx:get "path")
    flow.sleep(0.2)
    if text:find "poison" then ctx:fail "poison" end
    print("processed " .. text)
  end,
})

local slots = flow.limit("slots", 2)
local function process(path)
  slots:use(function()
    local run = ProcessOp:run({ path = path }, { log_limit = 100 })
    if run.ok then
      fs.remove(path)
    else
      print("put aside: " .. run.error.message)
      fs.rename(path, path .. ".failed")
    end
  end)
end

flow.on_stop(function(signal) print(signal .. ": finishing what has begun") end)

-- The demonstration: some jobs, and then the signal that a service manager sends.
if not arg[1] then
  for i, text in ipairs { "one", "poison", "three" } do
    fs.write(("%s/%d.job"):format(folder, i), text)
  end
  flow.spawn(function()
    flow.sleep(1)
    flow.exec({ "sh", "-c", "kill -TERM $PPID" }):await()
    fs.write(folder .. "/4.job", "too late")
  end)
end

local seen = {}
while not flow.stopping do
  for _, path in ipairs(fs.list(folder)) do
    if path:find "%.job$" and not seen[path] then
      seen[path] = true
      flow.spawn(process, path)
    end
  end
  flow.sleep(0.1)
end
