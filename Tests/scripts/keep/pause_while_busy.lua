-- SIGTERM in a busy op only pauses a kept run, too: nothing is undone, and the next process continues.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local script = kept.script [[
local PayOp = flow.op("PayOp", {
  run = function(ctx) effect "pay" ctx:set("paid", true) end,
  undo = function() effect "refund" end,
})
local BusyOp = flow.op("BusyOp", function(ctx)
  ctx:defer(function() effect "cleanup" end)
  effect "busy"
  while os.getenv "BUSY" do end
end)
flow.new("order"):add(PayOp):add(BusyOp):run()
effect "end"
]]
local program = script:start { "--keep", environment = { BUSY = 1 } }
local path = script.folder .. "/effects"
kept.waits(function() return flow.fs.exists(path) and flow.fs.read(path):find "busy" end)
flow.exec { "kill", "-TERM", tostring(program.pid) }:await()
local result = program:await()
check.equal(result.status, 75, result.stderr)
script:expect_effects("pay", "busy", "cleanup")
script:run { "--resume" }
script:expect_effects("busy", "cleanup", "end")
