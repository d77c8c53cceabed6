-- `--why` executes no op, and prints which ones a resumed run takes over, which it executes again, and why.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local function why(script, ...)
  local result = script:run { "--why", ... }
  check.equal(result.status, 0, result.stderr)
  check.equal(#script:effects(), 0)
  return (result.stdout:gsub("run r%w+", "RUN"):gsub("%(%S*script.lua:%d+%)", "(PLACE)")), result.stderr
end
local function lines(...) return table.concat({ ... }, "\n") .. "\n" end

local script = kept.script [[
local BuildOp = flow.op("BuildOp", { gives = { image = "string" }, run = function(ctx)
  effect "build"
  ctx:set("image", "shop:17")
end })
local UploadOp = flow.op("UploadOp", { needs = { shard = "integer", image = "string" }, gives = { url = "string" },
  run = function(ctx)
    effect("upload" .. ctx:get "shard")
    if ctx:get "shard" == 3 and not os.getenv "ONLINE" then ctx:fail "no network" end
    ctx:set("url", ctx:get "image" .. ctx:get "shard")
  end })
local NotifyOp = flow.op("NotifyOp", { needs = { urls = "string[]" }, undo = function() effect "undo" end,
  run = function() effect "notify" end })
local SlowOp = flow.op("SlowOp", function() effect "slow" end)
local function end_of(name) return function() effect(name) end end
local publish = flow.new("publish"):will_start(end_of "will start"):did_finish(end_of "did finish")
  :add_grouped(UploadOp, { input = "shards", output = "urls", as = "shard", collect = "url", max_concurrent = 1,
    rate = { 1, per = 0.01 } })
  :add_finally(flow.op("CleanOp", end_of "clean"))
local run = flow.new("ship"):add(BuildOp):add_parallel(publish, SlowOp):add(NotifyOp)
  :case(function(data) return #data.urls > 4 end):add(flow.op("ManyOp", end_of "many")):otherwise():add(SlowOp):combine()
  :add_finally(flow.op("CleanOp", end_of "clean")):run { shards = { 1, 2, 3, 4, 5 } }
print "the flow has ended"
if os.getenv "USE" then print(run.data.urls[1]) end
]]

-- Nothing is kept yet: no store is made.
check.equal(why(script), lines("[ship/BuildOp] Executes: no run of the script is unfinished",
  "what follows [ship/BuildOp] isn't known before it has been executed", "ship: 1 new", "the flow has ended"))
check.equal(flow.fs.exists(script.folder .. "/.flowlua"), false)

-- A run that failed.
script:run { "--keep" }
script:effects()
local failed = lines("[ship/BuildOp] Kept from RUN", "[ship/publish/UploadOp #1 to #2] Kept from RUN",
  "[ship/publish/UploadOp #3] Again: it had failed: no network",
  "[ship/publish/UploadOp #4 to #5] Executes: RUN hasn't executed it", "[ship/SlowOp] Kept from RUN",
  "what follows [ship/publish/UploadOp #3] isn't known before it has been executed", "ship: 4 kept, 1 again, 2 new",
  "the flow has ended")
check.equal(why(script), failed)
-- Nothing was written: the next one prints the same.
check.equal(why(script), failed)

-- An edit, with values from before for what follows it.
script:run { "--resume", environment = { ONLINE = 1 } }
check.equal(script:run({ "--keep" }).status, 1)
script:effects()
script:edit("shop:17", "shop:18")
check.contains(why(script), "[ship/BuildOp] Again: its code changed (PLACE)\n",
  "[ship/publish/UploadOp #1 to #2] Kept from RUN, if the values before it stay the same\n", ": 3 kept, 2 again, 2 new\n")
check.contains(why(script, "--trust-code"), "[ship/BuildOp] Kept from RUN: its code changed, but is trusted\n",
  "[ship/publish/UploadOp #1 to #2] Kept from RUN\n")
script:edit("{ 1, 2, 3, 4, 5 }", "{ 1, 7, 2 }")
check.contains(why(script), "[ship/publish/UploadOp #2] Again: <shard> differs\n",
  "[ship/publish/UploadOp #3] Kept from RUN, if")

-- A script that needs the outcome of a run that isn't known ends there, and has no effect before.
local out = script:run { "--why", environment = { USE = 1 } }
check.equal(out.status, 0)
check.contains(out.stdout, "needs the outcome of 'ship': what follows isn't known\n")
script:edit('print "the flow has ended"', 'io.open("made", "w")')
out = script:run { "--why" }
check.contains(out.stdout, " calls 'open' (not while checking): what follows isn't known\n")
check.equal(out.status, 0)

-- All is known: the outcome is the one that was kept, and nothing at the end of a flow is executed.
script:edit('io.open("made", "w")', "")
script:edit("{ 1, 7, 2 }", "{ 1, 2, 3, 4, 5 }")
script:run { "--keep", environment = { ONLINE = 1 } }
script:effects()
local id = script:run({ "--runs" }).stdout:match "(r%w+) +finished[^\n]*\n$"
out = script:run { "--why", "--resume=" .. id, environment = { USE = 1 } }
check.equal(#script:effects(), 0)
check.contains(out.stdout, "ship: 9 kept\n", "\nshop:181\n", "[ship/ManyOp] Kept from run " .. id .. "\n")

-- A machine is known as far as its steps are; a step with `effect = "once"` in doubt has to be settled.
local machine = kept.script [[
local function step(name) return function(state, ctx) effect(name) if name == os.getenv "FAIL" then ctx:fail "no" end
  return { n = state.n + 1 } end end
local order = flow.machine { name = "order", start = "cart", flow.step("cart", { run = step "cart", flow.next(flow.forward "pay") }),
  flow.step("pay", { run = step "pay", flow.next(flow.forward "ship") }), flow.step("ship", { run = step "ship", final = true }) }
local PayOp = flow.op("PayOp", { effect = "once", run = function() effect "pay" os.exit(9) end })
flow.new("shop"):data { n = 1 }:add(order):add(PayOp):run()
]]
machine:run { "--keep", environment = { FAIL = "pay" } }
machine:effects()
check.equal(why(machine), lines("[shop/order/cart] Kept from RUN", "[shop/order/pay] Again: it had failed: no",
  "what follows [shop/order/pay] isn't known before it has been executed", "shop: 1 kept, 1 again"))
machine:run { "--resume" }
machine:effects()
check.contains(why(machine), "[shop/order/ship] Kept from RUN\n",
  "[shop/PayOp] Asks: had started in RUN, and may have had its effect\n", "shop: 3 kept, 1 to be settled\n")

-- Results of other runs count.
local cached = kept.script [[
flow.keep()
local SumOp = flow.op("SumOp", { needs = { n = "integer" }, gives = { sum = "integer" }, cache = true, run = function(ctx)
  effect("sum" .. ctx:get "n")
  ctx:set("sum", ctx:get "n" + 1)
end })
flow.new("sums"):add_grouped(SumOp, { input = "list", output = "sums" }):run { list = { 1, 2, tonumber(os.getenv "MORE") } }
]]
cached:run()
cached:effects()
check.contains(why(cached), "[sums/SumOp #1 to #2] Kept from RUN\n", "sums: 2 kept\n")
out = cached:run { "--why", environment = { MORE = 3 } }
check.contains(out.stdout, "[sums/SumOp #3] Executes: no run of the script is unfinished\n", "sums: 2 kept, 1 new\n")

-- Misuse.
local function misuse(...)
  local result = script:run { ... }
  check.equal(result.status, 2)
  return result.stderr
end
check.contains(misuse("--why", "--only", "X"), "options '--why', '--only' and '--from' can't be combined")
check.contains(misuse("--from", "A", "--from", "B"), "'--from' takes one op")
check.contains(misuse "--only=", "option '--only' needs an op: --only 'UploadOp #40'")
check.contains(misuse("--check", "--why"), "option '--check' can't be combined with '--why', '--only' or '--from'")
local missing = script:run { "--why", "--resume=rzzz" }
check.equal(missing.status, 2)
check.contains(missing.stderr, "there is no run 'rzzz' in the store")
