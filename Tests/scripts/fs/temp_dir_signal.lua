-- Each signal that ends a script, also a second one, removes its temporary folders and unfinished copies.
-- clock: real: signals for another process
local check = require "check"
local flow = require "flow"
local host = require "host"
local fs = flow.fs

local dir = fs.temp_dir()
flow.exec { "mkfifo", dir .. "/pipe" }:await()
fs.write(dir .. "/script.lua", [[
  local flow = require "flow"
  local dir = ...
  print(flow.fs.temp_dir())
  flow.spawn(function() flow.fs.copy(dir .. "/pipe", dir .. "/copy") end)
  while #flow.fs.list(dir, { hidden = true, match = ".flowlua-*" }) == 0 do flow.sleep(0.001) end
  print "ready"
  io.stdout:flush()
  flow.sleep(1000)
]])
for _, signal in ipairs { "INT", "TERM", "HUP" } do
  local result = host.signalled(host.binary, { dir .. "/script.lua", dir }, signal)
  check.equal(fs.exists(result.stdout:match "^[^\n]+"), false, signal)
  check.equal(#fs.list(dir, { hidden = true }), 2, signal)
end

-- At once: without cleanups, which a second signal cuts.
fs.write(dir .. "/script.lua", [[
  local flow = require "flow"
  local dir = ...
  local folder = flow.fs.temp_dir()
  print(folder)
  for i = 1, 12 do
    folder = folder .. "/" .. i
    flow.fs.mkdir(folder)
    for j = 1, 3 do io.open(folder .. "/file" .. j, "w"):close() end
  end
  flow.spawn(function() flow.fs.copy(dir .. "/pipe", dir .. "/copy") end)
  while #flow.fs.list(dir, { hidden = true, match = ".flowlua-*" }) == 0 do flow.sleep(0.001) end
  local op = flow.op("WaitOp", function(ctx)
    ctx:defer(function() print "cleaning" io.stdout:flush() flow.sleep(1000) end)
    print "ready"
    io.stdout:flush()
    flow.sleep(1000)
  end)
  op:run()
]])
for signals, number in pairs {
  ["TERM TERM"] = 15, ["INT INT"] = 2, ["HUP TERM"] = 15, QUIT = 3, PIPE = 13, ALRM = 14, USR1 = 10, USR2 = 12, VTALRM = 26,
  IO = 29, PWR = 30,
} do
  -- Without the file that SIGQUIT leaves.
  local result = host.signalled("bash", { "-c", 'ulimit -c 0; exec "$@"', "bash", host.binary, dir .. "/script.lua", dir },
    signals)
  check.equal(result.status, 128 + number, signals)
  check.equal(fs.exists(result.stdout:match "^[^\n]+"), false, signals)
  check.equal(#fs.list(dir, { hidden = true }), 2, signals)
end

-- The usual way to get SIGPIPE.
fs.write(dir .. "/script.lua", [[
  local flow = require "flow"
  print(flow.fs.temp_dir())
  while true do print "more" flow.sleep(0.001) end
]])
local result = host.run("bash", { "-c", '"$@" | head -1; echo "${PIPESTATUS[0]}"', "bash", host.binary, dir .. "/script.lua" })
local folder, status = result.stdout:match "^([^\n]+)\n(%d+)\n$"
check.equal(status, "141")
check.equal(fs.exists(folder), false)
