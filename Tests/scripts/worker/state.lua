-- A worker has its own globals and modules and a part of `flow`.
local flow = require "flow"
local check = require "check"
local function run(body)
  return flow.op("StateOp", { gives = { r = "any?" }, thread = "worker", run = function(ctx)
    ctx:set("r", body(ctx))
  end }):run()
end
undefined_here = 5 -- luacheck: ignore
local failed = run(function() return undefined_here end) -- luacheck: ignore
assert(failed.error.message:find("global 'undefined_here' isn't known in a worker: make it local", 1, true),
  failed.error.message)
failed = run(function() os.exit(3) end)
assert(failed.error.message:find("state.lua:%d+: os.exit can't be called in a worker"), failed.error.message)
failed = run(function() return require "no.such.module" end)
assert(failed.error.message:find("module 'no.such.module' not found", 1, true), failed.error.message)
check.equal(run(function() return require "check" ~= nil end).data.r, true)
for _, name in ipairs { "op", "new", "machine", "dispatcher", "ops", "step" } do
  failed = run(function() return flow[name] end)
  assert(failed.error.message:find("flow." .. name .. " isn't there in a worker", 1, true), failed.error.message)
end
failed = run(function(ctx) return ctx.run end)
assert(failed.error.message:find("ctx.run isn't there in a worker", 1, true))
-- Tasks, sleeps, programs.
local run1 = run(function()
  local t = flow.spawn(function(a) flow.sleep(0.001) return a + 1 end, 1)
  local all = flow.when_all_succeed { t, flow.with_delay(0.001, "x"), flow.resolved(3) }:await()
  local context = flow.context()
  flow.spawn(function() flow.sleep(0.001) context:set_result(true) end)
  assert(context.task:await() and flow.now() > 0)
  return table.concat(all, ",") .. flow.exec({ "echo", "hi" }):await().stdout
end)
assert(run1.ok, run1.error and run1.error.message)
check.equal(run1.data.r, "2,x,3hi\n")
-- A returned task is followed.
local FollowOp = flow.op("FollowOp", { gives = { a = "integer" }, thread = "worker", run = function(ctx)
  return flow.spawn(function() flow.sleep(0.001) ctx:set("a", 1) end)
end })
check.equal(FollowOp:run().data.a, 1)
-- A wait that nothing can end is stalled.
failed = run(function() flow.context().task:await() end)
check.equal(failed.error.kind, "stalled")
-- Strings that are too long, and deep recursion, fail the op alone.
failed = run(function() return string.rep("x", 1 << 33) end)
assert(failed.error.message:find("resulting string too large"), failed.error.message)
failed = run(function() local function f() return 1 + f() end return f() end)
assert(failed.error.message:find("stack overflow"), failed.error.message)
check.equal(run(function() return 1 end).data.r, 1)
