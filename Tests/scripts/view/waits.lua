-- A trace has each wait of an op's code, in workers too; without the option no log has them.
local check, host = require "check", require "host"
local json = require "flow".json
local scratch = require "scratch"

local folder, _ <close> = scratch.folder()
local file = folder .. "/trace.json"
local source = [[
  local flow = require "flow"
  local MainOp = flow.op("MainOp", function()
    flow.sleep(1)
    flow.spawn(function() flow.sleep(2) end):await()
  end)
  local WorkerOp = flow.op("WorkerOp", { thread = "worker", needs = { n = "integer" },
    run = function() flow.sleep(3) end })
  local StoppedOp = flow.op("StoppedOp", { timeout = 4, run = function() flow.sleep(100) end })
  local main = MainOp:run()
  flow.new("items"):data { list = { 1, 2 } }:add_grouped(WorkerOp, { input = "list" }):run()
  local worker = WorkerOp:run { n = 1 }
  assert(not StoppedOp:run().ok)
  for _, run in ipairs { main, worker } do
    for _, event in ipairs(run:events()) do
      if event.kind == "wait" then
        print(event.path, event.message:match "^%a+", event.started, event.time, event.outcome)
      end
    end
    assert(not run:summary():find("sleep", 1, true))
  end
]]
local result = host.script(source, {}, { before = { "--virtual-clock", "--trace", file } })
check.equal(result.stderr, "")
check.equal(result.stdout, table.concat {
  "MainOp\tsleep\t0.0\t1.0\tsucceeded\n", "MainOp\tsleep\t1.0\t3.0\tsucceeded\n",
  "MainOp\tawait\t1.0\t3.0\tsucceeded\n", "WorkerOp\tsleep\t0.0\t3.0\tsucceeded\n",
})
local waits = {}
for _, event in ipairs(json.read(file).traceEvents) do
  if event.cat == "wait" then
    waits[#waits + 1] = ("%s %s %.0f"):format(event.args.path, event.args["for"]:match "^%a+", event.dur / 1e6)
  end
end
table.sort(waits)
check.equal(table.concat(waits, "\n"), [[
MainOp await 2
MainOp sleep 1
MainOp sleep 2
StoppedOp sleep 4
WorkerOp sleep 3
items/WorkerOp #1 sleep 3
items/WorkerOp #2 sleep 3]])

result = host.script(source, {}, { before = { "--virtual-clock" } })
check.equal(result.stdout, "")
