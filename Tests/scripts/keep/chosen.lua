-- `--only` executes the ops that it names with the data they had, and nothing else; `--from` executes one and all after it.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local function op(name, options)
  local given = options or {}
  given.run = given.run or function(ctx)
    effect(name .. (ctx.index and ctx:has "shard" and ctx:get "shard" or ""))
    if name == os.getenv "FAIL" then ctx:fail "broken" end
  end
  return flow.op(name, given)
end
local BuildOp = op("BuildOp", { gives = { image = "string" }, undo = function() effect "undo" end, run = function(ctx)
  effect "BuildOp"
  ctx:set("image", "shop:17")
end })
local PushOp = op "PushOp"
local UploadOp = op("UploadOp", { needs = { shard = "integer", image = "string" }, retry = { attempts = 2, delay = 0 },
  thread = os.getenv "THREAD", gives = { url = "string" }, run = function(ctx)
    local shard = ctx:get "shard"
    local file = io.open("effects", "a")
    file:write("UploadOp", shard, " ", ctx:get "image", " ", ctx.attempt, "\n")
    file:close()
    if shard == 3 and os.getenv "OFFLINE" then ctx:fail "no network" end
    if shard == 1 and ctx.attempt == 1 and os.getenv "BUSY" then ctx:fail "busy" end
    ctx:set("url", ctx:get "image" .. "/" .. shard)
  end })
local NotifyOp = op("NotifyOp", { needs = { urls = "string[]" }, run = function(ctx)
  effect("NotifyOp " .. table.concat(ctx:get "urls", ","))
  if os.getenv "FAIL" == "NotifyOp" then ctx:fail "broken" end
  PushOp:run()
end })
local PayOp = op("PayOp", { effect = "once" })
local function step(name) return function(state, ctx) effect(name) return { n = (state.n or 0) + 1 } end end
local order = flow.machine { name = "order", start = "cart", flow.step("cart", { run = step "cart", flow.next(flow.forward "ship") }),
  flow.step("ship", { run = step "ship", final = true }) }
local run = flow.new("ship"):add(BuildOp)
  :add_grouped(UploadOp, { input = "shards", output = "urls", as = "shard", collect = "url", max_concurrent = 1,
    label = function(shard) return "s" .. shard end })
  :add(NotifyOp):add(order):add(PayOp):add_finally(op "CleanOp"):did_finish(function() effect "did finish" end)
  :run { shards = { 1, 2, 3, 4 } }
if os.getenv "USE" then effect("used " .. run.data.image) end
]]

local function runs(...) return script:expect(...) end

check.contains(runs(1, { "--only", "UploadOp" }), "there is no run of", "execute it with --keep first")
runs(1, { "--keep", environment = { OFFLINE = 1 } }, "BuildOp", "UploadOp1 shop:17 1", "UploadOp2 shop:17 1",
  "UploadOp3 shop:17 1", "UploadOp3 shop:17 2", "undo", "CleanOp", "did finish")

-- BuildOp was undone: what follows it has no data any more. A run that continues has it again.
check.contains(runs(1, { "--only", "UploadOp #2" }),
  "--only 'UploadOp #2' has executed nothing: what follows [ship/BuildOp] isn't known (Again: it was undone)")
check.contains(runs(1, { "--only", "UplaodOp" }),
  "--only 'UplaodOp' has executed nothing: no op of the script has that name (did you mean 'UploadOp'?)")
-- This one wasn't reached either, but there is one.
check.contains(runs(1, { "--only", "NotifyOp" }), "what follows [ship/BuildOp] isn't known")
check.contains(script:run({ "--runs" }).stdout, " failed ")
runs(0, { "--resume" }, "BuildOp", "UploadOp3 shop:17 1", "UploadOp4 shop:17 1",
  "NotifyOp shop:17/1,shop:17/2,shop:17/3,shop:17/4", "PushOp", "cart", "ship", "PayOp", "CleanOp", "did finish")

-- An item, by its number or by its path, in a worker, too; with its policy. The end of the flow isn't executed.
check.contains(runs(0, { "--only", "UploadOp #2" }, "UploadOp2 shop:17 1"),
  "--only 'UploadOp #2': executed 1 op of run r", ", skipped 8\n")
check.contains(runs(1, { "--only", "UplaodOp" }),
  "--only 'UplaodOp' has executed nothing: no op of the script has that name (did you mean 'UploadOp'?)")
runs(0, { "--only", "ship/UploadOp #1", environment = { BUSY = 1 } }, "UploadOp1 shop:17 1", "UploadOp1 shop:17 2")
runs(0, { "--only=UploadOp #4 s4", "--only", "UploadOp #2" }, "UploadOp2 shop:17 1", "UploadOp4 shop:17 1")
runs(0, { "--only", "UploadOp", environment = { THREAD = "worker" } }, "UploadOp1 shop:17 1", "UploadOp2 shop:17 1",
  "UploadOp3 shop:17 1", "UploadOp4 shop:17 1")
-- An op with all that it executes, a step of a machine.
runs(0, { "--only", "NotifyOp" }, "NotifyOp shop:17/1,shop:17/2,shop:17/3,shop:17/4", "PushOp")
runs(0, { "--only", "order.cart" }, "cart")
-- The script's code for the outcome doesn't run.
runs(0, { "--only", "order.ship", environment = { USE = 1 } }, "ship")

-- A failure is reported, and nothing is undone; the run itself stays finished, and the next one that continues it
-- executes the op again.
check.contains(runs(1, { "--only", "NotifyOp", environment = { FAIL = "NotifyOp" } },
  "NotifyOp shop:17/1,shop:17/2,shop:17/3,shop:17/4"), "[ship/NotifyOp] broken")
check.contains(script:run({ "--runs" }).stdout, "finished", "1 failed")
local id = script:run({ "--runs" }).stdout:match "\n(r%w+)"
runs(0, { "--resume=" .. id }, "NotifyOp shop:17/1,shop:17/2,shop:17/3,shop:17/4", "CleanOp", "did finish")

-- An effect that must not happen twice is asked about, too.
check.contains(runs(75, { "--only", "PayOp" }), "/PayOp] had finished in run " .. id, " PayOp=done --resume ")
runs(0, { "--only", "PayOp", "--settle", "PayOp=again" }, "PayOp")

-- The code of before doesn't matter for what isn't executed.
script:edit('effect "BuildOp"', 'effect "BuildOp!"')
runs(0, { "--only", "UploadOp #2" }, "UploadOp2 shop:17 1")
-- From an op on; what is before it stays as it was, although it has changed, and what is after it is executed.
runs(0, { "--from", "UploadOp #3", "--settle", "PayOp=again" }, "UploadOp3 shop:17 1", "UploadOp4 shop:17 1",
  "NotifyOp shop:17/1,shop:17/2,shop:17/3,shop:17/4", "PushOp", "cart", "ship", "PayOp", "CleanOp", "did finish")
runs(0, { "--resume=" .. id }, "CleanOp", "did finish")
-- Names that nothing has.
check.contains(runs(1, { "--only", "UplodOp" }), "no op of the script has that name")
check.contains(runs(2, { "--from", "UplodOp" }), "is named 'UplodOp' (did you mean 'UploadOp'?)")

-- A failure after it undoes what has finished, also in earlier processes.
runs(1, { "--from", "order", "--settle", "PayOp=again", environment = { FAIL = "PayOp" } },
  "cart", "ship", "PayOp", "undo", "CleanOp", "did finish")
