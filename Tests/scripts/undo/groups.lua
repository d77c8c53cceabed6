-- Items of groups and ops at the same time are undone in the reverse order of their ends, each with its data.
local flow, check = require "flow", require "check"

local undone = {}
local FailOp = flow.op("FailOp", function(ctx) ctx:fail("boom") end)
local UploadOp = flow.op("UploadOp", {
  needs = { seconds = "integer" },
  gives = { url = "string" },
  run = function(ctx)
    flow.sleep(ctx:get("seconds"))
    ctx:set("url", "url of " .. ctx:get("seconds"))
  end,
  undo = function(ctx)
    flow.sleep(0.001)
    undone[#undone + 1] = ("%d %s %d %s"):format(
      ctx.index or 0, ctx:get("url", "string"), ctx:get("seconds"), ctx:get("owner"))
  end,
})
local dispatcher = { input = "list", output = "urls", max_concurrent = 2, label = tostring }

local run = flow.new("f"):data { owner = "me" }
  :add_grouped(UploadOp, dispatcher):add(FailOp):run { list = { 3, 1, 5, 2 } }
check.equal(run.error.message, "boom")
check.same(undone, { "3 url of 5 5 me", "4 url of 2 2 me", "1 url of 3 3 me", "2 url of 1 1 me" })
check.contains(check.masked(run:summary()), "T [UploadOp #3 5] Undo: successfully")

-- Of a group that fails, those that had ended are undone.
undone = {}
local FlakyOp = UploadOp:with { name = "FlakyOp", timeout = 3.5 }
run = flow.new("f"):data { owner = "me" }:add_grouped(FlakyOp, dispatcher)
  :run { list = { 1, 10, 2 } }
check.equal(run.error.kind, "timeout")
check.same(undone, { "3 url of 2 2 me", "1 url of 1 1 me" })

-- Items that are flows undo themselves when they fail, even if the group doesn't.
undone = {}
local item = flow.new("item"):needs { seconds = "integer" }:data { owner = "item" }
  :add(UploadOp):add(flow.op("CheckOp", function(ctx)
    if ctx:get("seconds") == 2 then ctx:fail("two") end
  end))
run = flow.new("f"):add_grouped(item, { input = "list", allow_failure = true })
  :run { list = { 1, 2, 3 } }
check.equal(run.ok, true)
check.same(undone, { "0 url of 2 2 item" })
undone = {}
run = flow.new("f"):add_grouped(item, { input = "list", allow_failure = true }):add(FailOp)
  :run { list = { 1, 2, 3 } }
check.equal(run.ok, false)
check.same(undone, { "0 url of 2 2 item", "0 url of 3 3 item", "0 url of 1 1 item" })

-- Ops at the same time.
undone = {}
local function slow(name, seconds)
  return flow.op(name, {
    run = function() flow.sleep(seconds) end,
    undo = function(ctx) undone[#undone + 1] = ctx.name end,
  })
end
run = flow.new("f"):add_parallel(slow("AOp", 2), slow("BOp", 1), slow("COp", 9), FailOp):run()
check.equal(run.ok, false)
check.same(undone, {})
run = flow.new("f"):add_parallel(slow("AOp", 2), slow("BOp", 1), slow("COp", 9)):add(FailOp):run()
check.equal(run.ok, false)
check.same(undone, { "COp", "AOp", "BOp" })
