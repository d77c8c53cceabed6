-- A watch ends with its loop, op or run, when it is closed or cancelled, and with its folder.
local check = require "check"
local flow = require "flow"
local host = require "host"
local fs = flow.fs

local dir = fs.temp_dir()

-- A `for` that is left closes it.
local kept
do
  local watch = fs.watch(dir)
  fs.write(dir .. "/a", "")
  for change in watch, nil, nil, watch do
    check.equal(change.path, dir .. "/a")
    if change.kind == "created" then break end
  end
  kept = watch
end
check.equal(tostring(kept), "watch: " .. dir .. " (closed)")
check.equal(kept(), nil)
kept:close()
do
  local watch <close> = fs.watch(dir)
  kept = watch
end
check.contains(tostring(kept), "(closed)")

-- Closing, and cancelling, wake what waits.
local watch = fs.watch(dir)
local first, second = flow.spawn(function() return watch() or "end" end), flow.spawn(function() return watch() end)
check.equal(first.state, "pending")
second:cancel "enough"
second:wait()
check.equal(second.state, "cancelled")
watch:close()
check.equal(first:await(), "end")

-- Two that wait get a change each.
watch = fs.watch(dir)
first, second = flow.spawn(function() return watch().path end), flow.spawn(function() return watch().path end)
fs.write(dir .. "/b", "")
fs.write(dir .. "/c", "")
check.equal(first:await(), dir .. "/b")
check.equal(second:await(), dir .. "/c")

-- The end of the run that made it; an op that succeeded leaves it to the run.
local MakeOp = flow.op("MakeOp", function(ctx)
  kept = fs.watch(dir)
  fs.write(dir .. "/d", "")
end)
local UseOp = flow.op("UseOp", function(ctx) ctx:set("path", kept().path) end)
local run = flow.new("watching"):add(MakeOp):add(UseOp):run()
check.equal(run.data.path, dir .. "/d")
check.equal(kept(), nil)
local FailOp = flow.op("FailOp", function(ctx)
  kept = fs.watch(dir)
  ctx:fail "on purpose"
end)
check.equal(FailOp:run().ok, false)
check.equal(kept(), nil)

-- The end of what is watched.
fs.mkdir(dir .. "/sub")
watch = fs.watch(dir .. "/sub")
fs.remove(dir .. "/sub")
check.equal(watch().kind, "removed")
check.equal(watch(), nil)
check.equal(watch(), nil)

check.equal(check.raises(function() fs.watch(dir .. "/nothing") end, "can't watch", "nothing").name, "ENOENT")
check.usage(function() fs.watch(dir, { recursive = "yes" }) end, "watch", "#2", "'recursive'", "boolean")
check.usage(function() fs.watch("") end, "watch", "#1", "path")
check.usage(function() watch.close(io.stdout) end, "close", "watch expected, got FILE*")
check.usage(function() debug.getmetatable(watch).__call(1) end, "__call", "watch expected")

-- In a worker.
local WorkerOp = flow.op("WorkerOp", {
  thread = "worker", gives = { path = "string" }, needs = { dir = "string" },
  run = function(ctx)
    local own = require "flow".fs
    local mine = own.watch(ctx:get "dir")
    own.write(ctx:get "dir" .. "/e", "")
    ctx:set("path", mine().path)
  end,
})
check.equal(WorkerOp:run({ dir = dir }).data.path, dir .. "/e")

-- One that nobody waits for keeps no script alive, and none is left open.
local result = host.script("watch = require 'flow'.fs.watch '/'  print 'end'")
check.equal(result.stdout .. result.stderr, "end\n")
result = host.script [[
  local fs = require "flow".fs
  local before = #fs.list "/proc/self/fd"
  for _ = 1, 10 do
    for _ = 1, 20 do fs.watch "/" end
    collectgarbage()
    collectgarbage()
  end
  print(#fs.list "/proc/self/fd" < before + 20)
]]
check.equal(result.stdout .. result.stderr, "true\n")
