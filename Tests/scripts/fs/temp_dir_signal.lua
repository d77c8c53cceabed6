-- Ctrl-C and SIGTERM remove temporary folders and unfinished copies.
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
