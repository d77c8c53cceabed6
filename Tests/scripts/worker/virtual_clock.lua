-- On a virtual clock the sleeps of workers take no time, and all clocks agree.
local check = require "check"
local host = require "host"
local out = host.script([[
local flow = require "flow"
local SleepOp = flow.op("LongOp", { gives = { t = "number" }, thread = "worker",
  run = function(ctx) flow.sleep(3600) flow.sleep(3600) ctx:set("t", flow.now()) end })
local begin = flow.now()
local run = SleepOp:run()
assert(run.ok, run.error and run.error.message)
print(run.data.t - begin, flow.now() - begin, run.duration)
local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, gives = { t = "number" }, thread = "worker",
  run = function(ctx) local b = flow.now() flow.sleep(ctx:get("n") * 60) ctx:set("t", flow.now() - b) end })
local run = flow.new("g"):data { ns = { 1, 2, 3, 4 } }
  :add_grouped(ItemOp, { input = "ns", output = "out", max_concurrent = 4 }):run()
print(table.concat(run.data.out, " "), run.duration)
local TimeoutOp = SleepOp:with { timeout = 10, retry = { attempts = 2, delay = 100 } }
local run = TimeoutOp:run()
print(run.error.message, run.duration)
local both = flow.new("p"):add_parallel(SleepOp, flow.op("MainOp", function() flow.sleep(10) end)):run()
print(both.ok, both.duration)
-- An item that sleeps keeps none from a worker that has room: 20 items that take no time don't hide that.
local ns = { [21] = 10 }
for i = 1, 20 do ns[i], ns[i + 21] = 0, 1 end
for _ = 1, 5 do
  local run = flow.new("g"):data { ns = ns }:add_grouped(ItemOp, { input = "ns", output = "out", max_concurrent = 3 }):run()
  io.write(run.duration, " ")
end
print()
]], {}, { before = { "--virtual-clock" } })
assert(out.status == 0, out.stderr)
check.equal(out.stdout, "7200.0\t7200.0\t7200.0\n60.0 120.0 180.0 240.0\t240.0\ntimed out after 10s\t120.0\ntrue\t7200.0\n"
  .. "600 600 600 600 600 \n")
