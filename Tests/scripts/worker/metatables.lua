-- A metatable travels by the name of the module that holds it; any other is refused by name, never
-- dropped.
local flow, check = require "flow", require "check"
local shapes = require "shapes"
local Point = shapes.Point
local DoubleOp = flow.op("DoubleOp", {
  needs = { p = "any" }, gives = { q = "any" }, thread = "worker",
  run = function(ctx)
    local p = ctx:get "p"
    assert(getmetatable(p) == require("shapes").Point)
    ctx:set("q", p:double())
  end,
})

-- Data both ways, within tables, once for each object.
local run = DoubleOp:run { p = Point.new(4) }
assert(run.ok, run.error)
check.equal(getmetatable(run.data.q), Point)
check.equal(run.data.q:double().x, 16)
local EchoOp = flow.op("EchoOp", {
  needs = { value = "any" }, gives = { back = "any" }, thread = "worker",
  run = function(ctx) ctx:set("back", ctx:get "value") end,
})
local p = Point.new(1)
p.next, p.module = Point.new(2), shapes.new()
p.next.back = p
local back = EchoOp:run { value = { p, p, [p] = "key", plain = {} } }.data.back
assert(back[1] == back[2] and back[back[1]] == "key" and back[1] ~= p)
assert(getmetatable(back[1].next) == Point and back[1].next.back == back[1])
assert(getmetatable(back[1].module) == shapes and getmetatable(back.plain) == nil and getmetatable(back) == nil)

-- Items and outputs of a group, arguments, results of continuations.
local points = {}
for i = 1, 200 do points[i] = Point.new(i) end
run = flow.new("g"):data { points = points }
  :add_grouped(DoubleOp, { input = "points", output = "doubled" }):run()
assert(run.ok, run.error)
for i, q in ipairs(run.data.doubled) do assert(getmetatable(q) == Point and q.x == 2 * i) end
local ArgOp = flow.op("ArgOp", { gives = { x = "any" }, thread = "worker",
  run = function(ctx, q) ctx:set("x", q:double().x) end })
check.equal(ArgOp(Point.new(3)):run().data.x, 6)
local task = flow.resolved(Point.new(5)):next_on_success(function(q) return q:double() end, { thread = "worker" })
check.equal(getmetatable(task:await()), Point)

-- Errors are errors there, and come back as some.
local failed = flow.op("FailOp", function(ctx) ctx:fail("broken", { code = 7 }) end):run().error
back = EchoOp:run { value = { failed } }.data.back[1]
check.equal(tostring(back), tostring(failed))
check.equal(back.kind, "error")
check.equal(back.code, 7)

-- Any other is refused, by name.
local Own = { __name = "Own" }
local function refused(run, ...)
  assert(not run.ok)
  for _, part in ipairs { ... } do check.contains(run.error.message, part) end
end
refused(EchoOp:run { value = setmetatable({}, Own) },
  "<value> is a table (Own) whose metatable no module holds: it can't go to or from a worker")
refused(EchoOp:run { value = { deep = { setmetatable({}, {}) } } },
  "<value>.deep[1] is a table whose metatable no module holds")
refused(ArgOp(setmetatable({}, Own)):run(), "argument #1 is a table (Own) whose metatable")
run = flow.new("g"):data { points = { Point.new(1), setmetatable({}, Own) } }
  :add_grouped(DoubleOp, { input = "points", output = "doubled", allow_failure = true, failures = "bad" }):run()
check.equal(#run.data.doubled, 1)
check.contains(run.data.bad[1].error.message, "item #2 is a table (Own) whose metatable no module holds")
local MakeOp = flow.op("MakeOp", { gives = { made = "any" }, thread = "worker",
  run = function(ctx) ctx:set("made", setmetatable({}, { __name = "Made" })) end })
refused(MakeOp:run(), "<made> is a table (Made) whose metatable no module holds")
task = flow.resolved(1):next(function() return setmetatable({}, {}) end, { thread = "worker" })
task:wait()
check.contains(task.error.message, "the result is a table whose metatable no module holds")
-- A global isn't a module's: no worker has it.
Global = Own -- luacheck: ignore
refused(EchoOp:run { value = setmetatable({}, Own) }, "no module holds")

-- A function takes the metatables of its upvalues along, as it takes these.
local Account = { __name = "Account" }
Account.__index = Account
function Account:total() return self.sum end
local account = setmetatable({ sum = 3 }, Account)
local point = Point.new(9)
local UpOp = flow.op("UpOp", { gives = { sum = "integer", x = "integer" }, thread = "worker",
  run = function(ctx)
    assert(getmetatable(account) == Account and getmetatable(point) == require("shapes").Point)
    ctx:set("sum", account:total())
    ctx:set("x", point:double().x)
  end })
run = UpOp:run()
assert(run.ok, run.error)
check.equal(run.data.sum + run.data.x, 21)
