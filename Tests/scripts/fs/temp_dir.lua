-- A temporary folder ends with the run that made it, after its cleanups, or with the script.
local check = require "check"
local flow = require "flow"
local host = require "host"
local fs = flow.fs

local seen = {}
local MakeOp = flow.op("MakeOp", function(ctx, how)
  local dir = fs.temp_dir()
  check.equal(fs.stat(dir).mode, tonumber("700", 8))
  fs.mkdir(dir .. "/a/b")
  fs.write(dir .. "/a/b/c", "x")
  ctx:set("dir", dir)
  ctx:defer(function() seen[#seen + 1] = fs.exists(dir .. "/a/b/c") end)
  if how == "fail" then ctx:fail "on purpose" end
  if how == "wait" then flow.sleep(1e6) end
end)
local UseOp = flow.op("UseOp", function(ctx) seen[#seen + 1] = fs.exists(ctx:get "dir") end)

local run = flow.new("use"):add(MakeOp):add(UseOp):add_finally(UseOp):run()
check.equal(run.ok, true)
check.equal(fs.exists(run.data.dir), false)
run = MakeOp("fail"):run()
check.equal(run.error.message, "on purpose")
check.equal(fs.exists(run.data.dir), false)
run = MakeOp("wait"):start()
while not run.data.dir do flow.sleep(0.001) end
run:cancel()
run:wait()
check.equal(fs.exists(run.data.dir), false)
check.same(seen, { true, true, true, true, true })

-- In a worker.
local WorkerOp = flow.op("WorkerOp", {
  thread = "worker", gives = { dir = "string", was = "boolean" },
  run = function(ctx)
    local own = require "flow".fs
    ctx:set("dir", own.temp_dir())
    ctx:set("was", own.exists(ctx:get "dir"))
  end,
})
run = WorkerOp:run()
check.equal(run.data.was, true)
check.equal(fs.exists(run.data.dir), false)

-- A folder that an op gives in a worker stays as long as one that an op of the main thread gives.
local GiveOp = flow.op("GiveOp", {
  thread = "worker", gives = { dir = "string", file = "file" },
  run = function(ctx)
    local own = require "flow".fs
    local folder = own.temp_dir()
    own.write(folder .. "/file", "x")
    ctx:set("dir", folder)
    ctx:set("file", folder .. "/file")
  end,
})
local read
local ReadOp = flow.op("ReadOp", function(ctx) read = fs.read(ctx:get "file") end)
run = flow.new("give"):add(GiveOp):add(ReadOp):run()
check.equal(run.error, nil)
check.equal(read, "x")
check.equal(fs.exists(run.data.dir), false)

-- At the end of a script, however it ends.
for _, ending in ipairs { "", "os.exit(0)", "os.exit(0, true)", "error 'on purpose'" } do
  local result = host.script("print(require 'flow.fs'.temp_dir()) io.stdout:flush() " .. ending)
  local dir = result.stdout:match "^[^\n]+"
  check.contains(dir, "/flowlua-")
  check.equal(fs.exists(dir), false, ending)
end
local dir = fs.temp_dir()
local result = host.script("print(require 'flow.fs'.temp_dir())", nil, { environment = { TMPDIR = dir } })
check.equal(result.stdout:sub(1, #dir + 9), dir .. "/flowlua-")
result = host.script("print(pcall(require 'flow.fs'.temp_dir))", nil, { environment = { TMPDIR = dir .. "/no" } })
check.contains(result.stdout, "can't make folder", dir .. "/no/flowlua-")
