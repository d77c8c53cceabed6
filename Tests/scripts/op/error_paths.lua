-- tostring of an error begins with the path of its op, and the message doesn't.
local flow, check, host = require "flow", require "check", require "host"
local function fails(run, path, message)
  run:wait()
  check.equal(run.error.path, path)
  check.equal(tostring(run.error), ("[%s] %s"):format(path, message or "no luck"))
  check.lacks(run.error.message, "[")
  check.contains(run:summary(), "DidFinish: withError: " .. run.error.message)
end

local FailOp = flow.op("FailOp", function(ctx) ctx:fail("no luck") end)
-- Alone, in a flow, in a flow within, in a branch, at the end.
fails(FailOp:run(), "FailOp")
fails(FailOp:with { name = "OtherOp" }:run(), "OtherOp")
local run = flow.new("publish"):add(FailOp):run()
check.equal(run.error.path, "publish/FailOp")
check.equal(run.error.op, "FailOp")
fails(flow.new("publish"):add(flow.new("inner"):add(FailOp)):run(), "publish/inner/FailOp")
fails(flow.new("publish"):case("plan", "pro"):add(FailOp):combine():run { plan = "pro" }, "publish/FailOp")
fails(flow.new("publish"):add_finally(FailOp):run(), "publish/FailOp")
fails(flow.new("publish"):add_parallel(FailOp, flow.op("FineOp", function() end)):run(), "publish/FailOp")
fails(flow.new("publish"):add(FailOp, { retry = 3 }):run(), "publish/FailOp")
fails(flow.new("publish"):add(flow.new("inner"):add(FailOp):with { retry = 2 }):run(), "publish/inner/FailOp")
run = flow.new("publish"):case(function() error("bad", 0) end):add(FailOp):run()
check.equal(tostring(run.error), "[publish/Cases] bad")
run = flow.new("publish"):will_start(function() error("bad", 0) end):add(FailOp):run()
check.equal(tostring(run.error), "[publish] bad")

-- Groups within groups, on the main thread and in workers.
for _, thread in ipairs { "main", "worker" } do
  for _, retry in ipairs { 1, 2 } do
    local CountOp = flow.op("CountOp", {
      needs = { n = "integer" }, thread = thread,
      run = function(ctx) if ctx:get "n" == 22 then error("connection refused", 0) end end,
    })
    if retry > 1 then CountOp = CountOp:with { retry = retry } end
    local shards = flow.new("ShardsOp"):needs { shard = "table" }
      :add(flow.op("SplitOp", function(ctx) ctx:set("list", ctx:get("shard")) end))
      :add_grouped(CountOp, { input = "list" })
    local publish = flow.new("publish"):data { shards = { { 11 }, { 21, 22 }, { 31 } } }
      :add_grouped(shards, { input = "shards", as = "shard" })
    fails(publish:run(), "publish/ShardsOp #2/CountOp #2", "connection refused")
    check.equal(publish:run().error.op, "CountOp #2")
  end
end
run = flow.new("publish"):data { list = {} }:add_grouped(FailOp, { input = "list", as = "n" }):run()
check.contains(tostring(run.error), "[publish/Group] no operation to run for group")

-- A run that an op has started, a machine's step.
local outer = flow.op("OuterOp", function() flow.new("child"):add(FailOp):run():await() end)
fails(outer:run(), "OuterOp/child/FailOp")
fails(flow.new("publish"):add(outer):run(), "publish/OuterOp/child/FailOp")
local machine = flow.machine {
  name = "transfer", start = "amount",
  flow.step("amount", { run = FailOp, flow.next(flow.forward "done") }),
  flow.step("done", { run = function() end }),
}
fails(flow.new("publish"):add(machine):run(), "publish/transfer/FailOp")

-- An error that is passed on keeps its path, and its identity.
local first
run = flow.op("CatchOp", function()
  local child = FailOp:run()
  first = child.error
  error(first)
end):run()
check.equal(run.error.path, "CatchOp/FailOp")
assert(rawequal(run.error, first))
-- An error that is caught within the op has it too.
local caught
local GetOp = flow.op("GetOp", function(ctx) caught = select(2, pcall(ctx.get, ctx, "x")) end)
check.equal(flow.new("publish"):add(GetOp):run().error.kind, "insufficient_input")
check.equal(tostring(caught), "[publish/GetOp] can't find <x> in data bucket")
-- An error of no op has no place.
check.equal(tostring(flow.failed("plain").error), "plain")

-- Errors can be joined with texts, numbers and one another.
local e = FailOp:run().error
check.equal("so: " .. e, "so: [FailOp] no luck")
check.equal(e .. "!" .. 1, "[FailOp] no luck!1")
check.equal(e .. e, "[FailOp] no luck[FailOp] no luck")
check.raises(function() return e .. {} end, "error_paths.lua:", "attempt to concatenate a table value")
check.raises(function() return nil .. e end, "attempt to concatenate a nil value")

-- A key that nearly fits is suggested, one that doesn't isn't.
local NeedOp = flow.op("NeedOp", { needs = { email = "string" }, run = function() end })
run = NeedOp:run { emial = "x", other = 1 }
check.equal(run.error.suggestion, "emial")
check.equal(run.error.message, "can't find <email> in data bucket")
check.equal(tostring(run.error), "[NeedOp] can't find <email> in data bucket (did you mean <emial>?)")
check.contains(run:summary(), "withInsufficientInputData: can't find <email> in data bucket\n")
check.equal(NeedOp:run { other = 1 }.error.suggestion, nil)
run = flow.op("GiveOp", { gives = { url = "string" }, run = function(ctx) ctx:set("ulr", "x") end }):run()
check.contains(tostring(run.error), "(did you mean <ulr>?)")
run = flow.op("GetOp", function(ctx) ctx:get("nmae", "string") end):run { name = 1 }
check.contains(tostring(run.error), "(did you mean <name>?)")
run = flow.new("group"):data { list = { 1 }, limit = 1 }
  :add_grouped(flow.op("ItemOp", function(ctx) ctx:get "limt" end), { input = "list", as = "n" }):run()
check.equal(tostring(run.error), "[group/ItemOp #1] can't find <limt> in data bucket (did you mean <limit>?)")

-- Secrets don't show there either.
run = flow.op("open sesame", function(ctx) ctx:fail("no") end):run { p = flow.secret("open sesame") }
check.equal(tostring(run.error), "[<redacted>] no")

-- The reports at exit and of the main chunk.
local result = host.script([[
local flow = require "flow"
local CountOp = flow.op("CountOp", { needs = { n = "integer" }, run = function() error("connection refused", 0) end })
local publish = flow.new("publish"):data { list = { 1 } }:add_grouped(CountOp, { input = "list" })
publish:start()
publish:run():await()]])
check.equal(result.status, 1)
check.contains(result.stderr, ": [publish/CountOp #1] connection refused\n",
  ": publish failed: [publish/CountOp #1] connection refused\n")
