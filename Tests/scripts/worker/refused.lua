-- A value that can't be transferred is refused by name, for an op already at its definition.
local flow = require "flow"
local check = require "check"
local function refuses(body, ...)
  for _, make in ipairs {
    function() return flow.op("BadOp", { thread = "worker", run = body }) end,
    function() return flow.op("BadOp", body):with { thread = "worker" } end,
    function() return flow.new("f"):add(flow.op("BadOp", body), { thread = "worker" }) end,
    function() return flow.resolved(1):next(body, { thread = "worker" }) end,
  } do
    local ok, error = pcall(make)
    assert(not ok, "it was taken")
    check.equal(error.kind, "usage")
    assert(error.message:find("^[^\n]*refused.lua:%d+: "), error.message)
    for _, part in ipairs { ... } do assert(error.message:find(part, 1, true), error.message) end
  end
end
local file = assert(io.open(arg[0]))
refuses(function() return file end, "upvalue 'file'", "can't go to a worker")
local co = coroutine.create(print)
refuses(function() return co end, "upvalue 'co'", "a coroutine")
local holder = { deep = { co } }
refuses(function() return holder end, "upvalue 'holder'", "deep")
local PrintOp = flow.ops.PrintOp("x")
refuses(function() return PrintOp end, "upvalue 'PrintOp'")
-- Only ops written in Lua run in workers.
check.usage(function() flow.new("f"):with { thread = "worker" } end, "only ops written in Lua", "f")
check.usage(function() PrintOp:with { thread = "worker" } end, "only ops written in Lua")
check.usage(function() flow.op("A", { thread = "wroker", run = print }) end, '"main", "worker" or "remote"')

-- Values.
local SetOp = flow.op("SetOp", { thread = "worker", run = function(ctx) ctx:set("f", function() end) end })
local run = SetOp:run()
assert(run.error.message:find("refused.lua:%d+: the value of <f> is a function: it can't"), run.error.message)
run = flow.op("SetOp", { thread = "worker", run = function(ctx) ctx:set("t", { a = { coroutine.create(print) } }) end }):run()
assert(run.error.message:find("<t>.a[1] is a coroutine", 1, true), run.error.message)
local ItemOp = flow.op("ItemOp", {
  needs = { n = "any" }, gives = { f = "any" }, thread = "worker",
  run = function(ctx) ctx:set("f", print) end,
})
run = flow.new("g"):data { ns = { 1 } }:add_grouped(ItemOp, { input = "ns", output = "out" }):run()
assert(run.error.message:find("<f>", 1, true), run.error.message)
run = flow.new("g"):data { ns = { 1, print, 3 } }
  :add_grouped(ItemOp, { input = "ns", output = "out", allow_failure = true, failures = "bad" }):run()
assert(run.data.bad[2].error.message:find("item #2 is a function", 1, true), run.data.bad[2].error.message)
-- An argument, a need, and the result of a continuation.
run = flow.op("ArgOp", { thread = "worker", run = function() end })(1, print):run()
assert(run.error.message:find("argument #2 is a function", 1, true), run.error.message)
run = flow.op("NeedOp", { needs = { f = "function" }, thread = "worker", run = function() end }):run { f = print }
assert(run.error.message:find("<f> is a function", 1, true), run.error.message)
local task = flow.resolved(1):next(function() return print end, { thread = "worker" })
task:wait()
assert(task.error.message:find("the result is a function", 1, true), task.error.message)
-- An upvalue that was assigned since: as soon as a run begins.
local k = 1
local StaleOp = flow.op("StaleOp", {
  needs = { n = "any?" }, gives = { k = "integer" }, thread = "worker",
  run = function(ctx) ctx:set("k", k) end,
})
check.equal(StaleOp:run().data.k, 1)
k = 2
run = StaleOp:run()
check.equal(run.error.kind, "usage")
check.contains(run.error.message, "refused.lua:56: upvalue 'k' of function at ")
check.contains(run.error.message, "refused.lua:58 was assigned after [StaleOp] was made")
run = flow.new("g"):data { ns = { 1, 2 } }:add_grouped(StaleOp, { input = "ns" }):run()
check.contains(run.error.message, "refused.lua:56: upvalue 'k'")
local stale = flow.with_delay(0):next(function() return k end, { thread = "worker" })
k = 3
stale:wait()
check.contains(stale.error.message, "refused.lua:68: upvalue 'k'")
