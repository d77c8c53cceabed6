-- Limits of time, processor time, memory and open files end a script, or fail what exceeds them, as documented.
-- clock: real: the limits are times of the machine
local check = require "check"
local host = require "host"

local function limited(options, text)
  local words = { table.unpack(options) }
  words[#words + 1] = "-e"
  words[#words + 1] = text
  return host.run(host.binary, words)
end

-- Everything is cancelled, and cleanups run: of an op that waits, and of one that is busy.
for _, body in ipairs { "flow.sleep(100)", "while true do end" } do
  local result = limited({ "--time-limit", "0.5" }, ([[
    local flow = require "flow"
    local WorkOp = flow.op("WorkOp", function(ctx)
      ctx:defer(function() flow.sleep(0.02) print "cleaned up" end)
      %s
    end)
    local run = WorkOp:start()
    local done, err = pcall(function() run:await() end)
    print(done, err.kind, err.message)]]):format(body))
  check.contains(result.stdout, "cleaned up", "time", "the time limit of 0.5s was exceeded")
  check.equal(result.status, 124, result.stderr)
end

-- The main chunk gets an error, which isn't the end if it is caught: the status still says so.
local result = limited({ "--time-limit=0.1" }, [[
  print(pcall(function() while true do end end))
  print "caught"]])
check.contains(result.stdout, "the time limit of 0.1s was exceeded", "caught")
check.contains(result.stderr, "the time limit of 0.1s was exceeded")
check.equal(result.status, 124)

-- A script that ends in time isn't concerned, nor is the virtual clock.
result = limited({ "--time-limit", "60", "--cpu-limit", "60", "--virtual-clock" }, [[
  require "flow".sleep(1000) print "done"]])
check.equal(result.stdout, "done\n")
check.equal(result.status, 0, result.stderr)

-- Workers are stopped, too.
result = limited({ "--time-limit", "0.5" }, [[
  local flow = require "flow"
  flow.op("BusyOp", { thread = "worker", run = function() while true do end end }):run()]])
check.contains(result.stderr, "the time limit of 0.5s was exceeded")
check.equal(result.status, 124)

-- Cleanups have their grace, and no more.
result = limited({ "--time-limit", "0.5", "--grace", "0.1" }, [[
  local flow = require "flow"
  flow.op("SlowOp", function(ctx)
    ctx:defer(function() print "begun" io.stdout:flush() flow.sleep(100) print "never" end)
    flow.sleep(100)
  end):run()]])
check.equal(result.stdout, "begun\n")
check.equal(result.status, 124, result.stderr)

-- Processor time: of the process, and of each program.
result = limited({ "--cpu-limit", "1" }, "while true do end")
check.contains(result.stderr, "the limit of 1 s of processor time was exceeded")
check.equal(result.status, 124)
result = limited({ "--cpu-limit", "1" }, [[
  local flow = require "flow"
  local done, err = pcall(function() flow.exec({ "sh", "-c", "while :; do :; done" }):await() end)
  print(done, err)]])
check.contains(result.stdout, "false", "CPU time limit exceeded")
check.equal(result.status, 0, result.stderr)

-- Memory: an error that can be caught, of the kind memory in an op, and the script continues.
result = limited({ "--memory-limit", "32M" }, [[
  local flow = require "flow"
  print(pcall(string.rep, "x", 1 << 30))
  local GrowOp = flow.op("GrowOp", function() local t = {} while true do t[#t + 1] = #t .. "" end end)
  local run = GrowOp:start()
  pcall(run.await, run)
  print(run.error.kind, run.error.message)]])
check.equal(result.stdout, "false\tnot enough memory\nmemory\tnot enough memory\n")
check.equal(result.status, 0, result.stderr)

-- Open files: of the process, and of its programs.
result = limited({ "--open-files", "40" }, [[
  local files = {}
  for i = 1, 100 do files[i] = io.open "/dev/null" end
  print(#files < 40 and #files > 10, (select(2, io.open "/dev/null")))
  files = nil
  collectgarbage()
  print(require "flow".exec({ "sh", "-c", "ulimit -n; ulimit -Hn" }):await().stdout)]])
check.equal(result.stdout, "true\t/dev/null: Too many open files\n40\n40\n\n")
check.equal(result.status, 0, result.stderr)

-- Where none is left that is the reason: no library is missing, and no limit of changes in files is reached. Later they are there.
result = limited({ "--open-files", "40" }, [[
  local flow = require "flow"
  flow.op("FirstOp", { thread = "worker", run = function() end }):run()
  local files = {}
  for i = 1, 100 do files[i] = io.open "/dev/null" end
  local function say(...) print((tostring(select(2, pcall(...))):gsub("^.-:%d+: ", ""))) end
  local function request()
    local task = flow.http "http://127.0.0.1:1/"
    task:wait()
    if task.error then error(task.error.message, 0) end
  end
  say(request)
  say(flow.fs.watch, "/")
  say(flow.fs.hash, "/etc/passwd")
  for _, file in ipairs(files) do file:close() end
  say(request)
  print(#flow.fs.hash "/etc/passwd", flow.fs.watch "/tmp":close())]])
local shown = {}
for line in result.stdout:gmatch "[^\n]+" do shown[#shown + 1] = line end
check.equal(shown[1], "libcurl can't be opened: Too many open files", result.stderr)
check.equal(shown[2], "can't watch files: Too many open files")
check.contains(shown[3], "Too many open files")
check.contains(shown[4], "127.0.0.1")
check.equal(shown[5], "64")
check.equal(result.status, 0, result.stderr)
