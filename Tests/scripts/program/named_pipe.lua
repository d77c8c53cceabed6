-- A program whose input is a named pipe waits for its writer, as a shell's does.
-- clock: real: programs of the system
local check, flow = require "check", require "flow"

local folder = flow.fs.temp_dir()
local pipe = folder .. "/pipe"
flow.exec { "mkfifo", pipe }:await()
local function read(options)
  options.stdin = { file = pipe }
  return flow.exec({ "wc", "-l" }, options)
end
-- The writer comes later, writes in parts, or writes nothing.
for text, count in pairs { ["seq 1000"] = 1000, ["echo 1; sleep 0.1; echo 2"] = 2, [":"] = 0 } do
  local reader = read {}
  flow.sleep(0.05)
  check.equal(reader.state, "pending")
  flow.exec { "sh", "-c", "{ " .. text .. "; } >" .. pipe }:await()
  check.equal(tonumber(reader:await().stdout), count, text)
end
-- The writer comes first.
local writer = flow.exec { "sh", "-c", "echo 1 >" .. pipe }
flow.sleep(0.05)
check.equal(tonumber(read {}:await().stdout), 1)
writer:await()
-- Limits and stops hold meanwhile; nothing is left open.
local reader = read { timeout = 0.05 }
reader:wait()
check.equal(tostring(reader.error), "timed out after 0.05s")
reader = read {}
flow.sleep(0.02)
reader:cancel "enough"
reader:wait()
check.equal(tostring(reader.error), "cancelled: enough")
local run = flow.op("ReadOp", { timeout = 0.05, run = function() read {}:await() end }):run()
check.equal(run.error.kind, "timeout")
check.equal(flow.exec({ "timeout", "0.2", "sh", "-c", "echo lost >" .. pipe }, { check = false }):await().status, 124)
