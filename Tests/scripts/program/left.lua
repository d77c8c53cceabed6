-- A program that nothing waits for, and that the end of its run stops, is named in a warning, once for each line.
-- clock: real: the script is another program
local check, host = require "check", require "host"

local function warnings(text)
  local result = host.script("local flow = require 'flow'\n" .. text)
  return result.stderr
end

-- One line for all runs of the job, with the place, the words and the remedy.
local said = warnings [[
local LeftOp = flow.op("LeftOp", function() flow.exec { "sleep", "600" } end)
for _ = 1, 3 do flow.new("job"):add(LeftOp):add(flow.op("LastOp", function() end)):run() end
LeftOp:run()]]
local _, lines = said:gsub("\n", "")
check.equal(lines, 2, said)
check.match(said, "warning: exec at [^\n]+:2 %(sleep 600%) is stopped, as run 'job' has ended: "
  .. "flow%.exec%(…%):await%(%) waits for the program\n")
check.match(said, "is stopped, as run 'LeftOp' has ended")

-- A program that something has used, that has ended, or that was stopped otherwise, isn't one.
check.equal(warnings [[
flow.op("AwaitOp", function() flow.exec({ "true" }):await() end):run()
flow.op("CancelOp", function() flow.exec({ "sleep", "600" }):cancel() end):run()
flow.op("ReadOp", function() flow.exec({ "sh", "-c", "echo ready; sleep 600" }):lines()() end):run()
flow.op("WriteOp", function() flow.exec({ "cat" }, { stdin = "pipe" }) end):run()
flow.op("ReturnOp", function() return flow.exec { "true" } end):run()
flow.op("TaskOp", function() local program = flow.exec { "sleep", "600" } program:next(print) end):run()
local run = flow.op("StopOp", function() flow.exec { "sleep", "600" } flow.sleep(600) end):start()
run:cancel()
run:wait()]], "")

-- Its text shows no secret.
said = warnings [[
local key = flow.secret "open sesame"
flow.op("LeftOp", { needs = { key = "string" }, run = function(ctx)
  flow.exec { "sh", "-c", "sleep 600", ctx:get "key" }
end }):run { key = key }]]
check.contains(said, "<redacted>")
check.lacks(said, "sesame")
