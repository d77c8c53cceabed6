-- A metatable is transferred by the name of the module that holds it.
-- Any other is refused by name, never dropped.
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

-- The metatable of an upvalue that is a module's is the worker's own one of that module.
local point, module, list = Point.new(9), shapes.new(), { Point.new(1), failed }
local UpOp = flow.op("UpOp", { gives = { x = "integer", text = "string", made = "any" }, thread = "worker",
  run = function(ctx)
    local here = require "shapes"
    assert(getmetatable(point) == here.Point and getmetatable(module) == here)
    assert(getmetatable(list[1]) == Point and Point == here.Point)
    ctx:set("x", point:double().x)
    ctx:set("text", tostring(list[2]))
    ctx:set("made", point)
  end })
run = UpOp:run()
assert(run.ok, run.error)
check.equal(run.data.x, 18)
check.equal(run.data.text, tostring(failed))
check.equal(getmetatable(run.data.made), Point)

-- An upvalue with another metatable is refused where the op or the continuation is made.
local function refused_upvalue(make, what)
  local made, message = pcall(make)
  assert(not made)
  message = tostring(message)
  assert(message:find "^[^:]*metatables%.lua:%d+: ", message)
  check.contains(message, what)
  check.contains(message, "whose metatable no module holds: it can't go to a worker; "
    .. "keep the metatable in a module, or make it inside the function")
end
local account, deep, bare = setmetatable({ sum = 3 }, Own), { of = { setmetatable({}, Own) } }, setmetatable({}, {})
local global, late = setmetatable({}, _G), { 1 }
local function op_with(f) return function() flow.op("BadOp", { thread = "worker", run = f }) end end
refused_upvalue(op_with(function() return account end), "upvalue 'account' of function at ")
refused_upvalue(op_with(function() return account end), "is a table (Own) whose")
refused_upvalue(op_with(function() return deep end), "has a table (Own) at deep.of[1] whose")
refused_upvalue(op_with(function() return bare end), "upvalue 'bare'")
refused_upvalue(op_with(function() return global end), "upvalue 'global'")
refused_upvalue(function() return flow.resolved(1):next(function() return account end, { thread = "worker" }) end,
  "upvalue 'account'")
local nested = function() return account end
refused_upvalue(op_with(function() return nested() end), "upvalue 'account' of function at ")

-- A class made there, or whose table alone travels, is as anywhere; one that is given a metatable after
-- the op was made has changed.
local Class = { __index = function(_, key) return key .. "!" end }
local ClassOp = flow.op("ClassOp", { gives = { text = "string" }, thread = "worker",
  run = function(ctx) ctx:set("text", setmetatable({}, Class).hey .. #late) end })
check.equal(ClassOp:run().data.text, "hey!1")
setmetatable(late, Own)
refused(ClassOp:run(), "upvalue 'late'", "was assigned after [ClassOp] was made")
