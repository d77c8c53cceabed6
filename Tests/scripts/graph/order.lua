-- Ops of a graph start when what they need is there, in the order in which they were added, and see only what is theirs.
local flow, check = require "flow", require "check"

-- An op that takes some seconds and gives each key the sum of its needs, and 1.
local function op(name, needs, gives, seconds, options)
  options = options or {}
  options.needs, options.gives = {}, {}
  for _, key in ipairs(needs) do options.needs[key] = "integer" end
  for _, key in ipairs(gives) do options.gives[key] = "integer" end
  options.run = function(ctx)
    flow.sleep(seconds)
    local sum = 1
    for _, key in ipairs(needs) do sum = sum + ctx:get(key) end
    for _, key in ipairs(gives) do ctx:set(key, sum) end
  end
  return flow.op(name, options)
end

-- The times at which ops started and ended, as `LoadOp 0-1`.
local function times(run)
  local begun, lines = {}, {}
  for _, event in ipairs(run:events()) do
    if event.kind == "start" then begun[event.id] = event.time end
    if event.kind == "finish" then
      lines[#lines + 1] = ("%s %g-%g"):format(event.op, begun[event.id], event.time)
    end
  end
  return table.concat(lines, ", ")
end

local A = op("AOp", { "n" }, { "a" }, 1)
local B = op("BOp", { "a" }, { "b" }, 2)
local C = op("COp", { "a" }, { "c" }, 1)
local D = op("DOp", { "b" }, { "d" }, 1)
local E = op("EOp", { "b", "c" }, { "e" }, 1)
local graph = flow.graph("g"):add(E):add(D):add(C):add(B):add(A)
local run = graph:run { n = 1 }
check.equal(times(run), "AOp 0-1, COp 1-2, BOp 1-3, EOp 3-4, DOp 3-4")
check.same({ run.data.a, run.data.b, run.data.c, run.data.d, run.data.e }, { 2, 3, 3, 4, 7 })
check.same(graph:check { n = 1 }, {})

-- One at a time: those that are ready, the one that was added first.
check.same(times(flow.graph("one", { max_concurrent = 1 }):add(E):add(D):add(C):add(B):add(A):run { n = 1 }),
  "AOp 0-1, COp 1-2, BOp 2-4, EOp 4-5, DOp 5-6")

-- An order that no data says; names, ops and lists of them.
local Last = op("LastOp", {}, {}, 1)
for _, after in ipairs { "AOp", A, { A, "COp" } } do
  local last = times(flow.graph("g"):add(Last, { after = after }):add(C):add(A):run { n = 1 }):match "LastOp [%d-]+"
  check.equal(last, type(after) == "table" and "LastOp 2-3" or "LastOp 1-2")
end

-- Groups and flows are steps: a group needs its list, a flow what its ops need.
local Item = flow.op("ItemOp", {
  needs = { i = "integer", a = "integer" }, gives = { r = "integer" }, primary_input = "i",
  run = function(ctx) flow.sleep(1) ctx:set("r", ctx:get "i" + ctx:get "a") end,
})
local List = flow.op("ListOp", {
  gives = { list = "integer[]" }, run = function(ctx) flow.sleep(3) ctx:set("list", { 10, 20 }) end })
local nested = flow.new("nested"):add(C):add(op("FOp", { "c" }, { "f" }, 1))
run = flow.graph("g"):add_grouped(Item, { input = "list", output = "sums" }, { after = "nested" }):add(nested):add(A)
  :add(List):add(op("EndOp", { "f" }, {}, 1, {}), { after = Item }):run { n = 1 }
check.equal(times(run), "AOp 0-1, COp 1-2, ListOp 0-3, FOp 2-3, nested 1-3, ItemOp 3-4, ItemOp 3-4, EndOp 4-5")
check.same(run.data.sums, { 12, 22 })
check.equal(run.data.f, 4)
-- Of a flow that declares what it gives, nothing else passes out.
run = flow.graph("g"):add(flow.new("inner"):needs { n = "integer" }:gives { a = "integer" }:add(A):add(C)):run { n = 1 }
check.same({ run.data.a, run.data.c }, { 2 })

-- A key within a flow is its own, also where another op gives the same one.
local own = flow.new("own"):gives { out = "integer" }:add(op("TOp", {}, { "tmp" }, 1)):add(op("UOp", { "tmp" }, { "out" }, 1))
check.equal(flow.graph("g"):add(own):add(op("TmpOp", {}, { "tmp" }, 0)):run().data.out, 2)
-- A flow that a run has begun with stays as it was.
local growing = flow.new("growing"):add(op("GOp", {}, { "g" }, 1))
run = flow.new("f"):add(flow.op("GrowOp", function() growing:add(op("HOp", {}, { "a" }, 1)) end))
  :add(flow.graph("g"):add(growing):add(A)):run { n = 1 }
check.same({ run.state, run.data.g, run.data.a }, { "succeeded", 1, 2 })

-- A graph is an op: it nests, is an item of a group, and is tried again.
local twice = flow.graph("twice"):add(D):add(flow.graph("inner"):add(B):add(A))
check.equal(twice:run { n = 1 }.data.d, 4)
run = flow.new("items"):add_grouped(flow.graph("each"):needs { n = "integer" }:gives { b = "integer" }:add(B):add(A),
  { input = "ns", output = "bs" }):run { ns = { 1, 2, 3 } }
check.same(run.data.bs, { 3, 4, 5 })
local attempts = 0
local Flaky = flow.op("FlakyOp", {
  needs = { a = "integer" }, gives = { z = "integer" },
  run = function(ctx)
    attempts = attempts + 1
    if attempts < 3 then error "not yet" end
    ctx:set("z", ctx:get "a")
  end,
})
run = flow.graph("again"):add(Flaky):add(A):with { retry = 3 }:run { n = 1 }
check.same({ run.state, run.data.z, attempts }, { "succeeded", 2, 3 })

-- Final steps see all data, undos come in the reverse order of the ends.
local undone = {}
local function undoable(name, needs, gives, seconds)
  return op(name, needs, gives, seconds, { undo = function(ctx) undone[#undone + 1] = ctx.name end })
end
local seen
run = flow.graph("undo"):add(undoable("AOp", { "n" }, { "a" }, 1)):add(undoable("BOp", { "a" }, { "b" }, 2))
  :add(undoable("COp", { "a" }, { "c" }, 1))
  :add(flow.op("FailOp", { needs = { b = "integer", c = "integer" }, run = function() error "no" end }))
  :add_finally(flow.op("LookOp", function(ctx) seen = ctx:get "a" + ctx:get "b" + ctx:get "c" end)):run { n = 1 }
check.equal(run.state, "failed")
check.same({ undone, seen }, { { "BOp", "COp", "AOp" }, 8 })

-- In workers ops see the same.
local Far = flow.op("FarOp", {
  needs = { a = "integer" }, gives = { far = "integer" }, thread = "worker",
  run = function(ctx) ctx:set("far", ctx:get "a" * 2) end,
})
check.equal(flow.graph("far"):add(Far):add(A):run { n = 1 }.data.far, 4)

-- Many ops, and a long chain.
local many, chain = flow.graph("many"), flow.graph("chain")
for k = 1, 2000 do
  many:add(op(("M%dOp"):format(k), { "n" }, { "m" .. k }, 0))
  chain:add(op(("C%dOp"):format(k), { "k" .. k }, { "k" .. k - 1 }, 0))
end
check.equal(many:run { n = 1 }.data.m2000, 2)
check.equal(chain:run { k2000 = 0 }.data.k0, 2000)
-- Graphs in graphs, and flows that use others twice.
local deep = flow.graph("deep"):add(A)
for k = 1, 1000 do deep = flow.graph("deep" .. k):add(deep) end
check.equal(deep:run { n = 1 }.data.a, 2)
local shared = flow.new("shared"):add(flow.op("NothingOp", function() end))
for k = 1, 12 do shared = flow.new("shared" .. k):add(shared):add(shared) end
check.equal(flow.graph("g"):add(shared):run().state, "succeeded")

-- Ops that execute one after another have nothing of those before: not their keys, nor what these have set.
local function chain(options)
  local seen = flow.graph("g", options)
    :add(op("AOp", {}, { "a" }, 0)):add(op("BOp", { "a" }, { "b" }, 0)):add(op("COp", { "b" }, { "c" }, 0))
  for i = 1, 40 do
    seen:add(flow.op("Look" .. i .. "Op", { needs = { c = "integer" }, run = function(ctx)
      check.equal(ctx:get "c", 3)
      check.equal(ctx:get "n", 7)
    end }))
  end
  return seen
end
for _, options in ipairs { {}, { max_concurrent = 1 } } do
  run = chain(options):run { n = 7 }
  check.equal(run.state, "succeeded", tostring(run.error))
end
for _, key in ipairs { "a", "b" } do
  run = flow.graph("g"):add(op("AOp", {}, { "a" }, 0)):add(op("BOp", { "a" }, { "b" }, 0)):add(op("COp", { "b" }, { "c" }, 0))
    :add(flow.op("LookOp", { needs = { c = "integer" }, run = function(ctx) ctx:get(key) end })):run()
  check.match(run.error.message, "<" .. key .. "> isn't among the needs of %[LookOp%]")
end
-- Nor has an attempt at the graph the data of the attempt before.
local tries = 0
run = flow.graph("g")
  :add(flow.op("GiveOp", { gives = { x = "integer?" }, run = function(ctx)
    tries = tries + 1
    if tries == 1 then ctx:set("x", 1) end
  end }))
  :add(flow.op("TakeOp", { needs = { x = "integer?" }, gives = { y = "string" }, run = function(ctx)
    ctx:set("y", tries .. tostring(ctx:get("x", "integer?")))
    if tries == 1 then error "again" end
  end }))
  :with { retry = 2 }:run()
check.same({ run.state, run.data.y }, { "succeeded", "2nil" }, tostring(run.error))
-- A condition sees what its op would see, and no more.
local asked = {}
run = flow.graph("g"):add(op("LateOp", {}, { "late" }, 1)):add(op("FirstOp", {}, { "a" }, 2))
  :add(op("ThenOp", { "a" }, {}, 0), { when = function(data) asked = { data.late, data.a } return true end }):run()
check.same({ run.state, asked }, { "succeeded", { nil, 1 } })
-- A flow removes a key that it needs for itself.
local DropOp = flow.op("DropOp", function(ctx) ctx:set("a", nil) end)
local SeeOp = flow.op("SeeOp", function(ctx) ctx:set("b", tostring(ctx:has "a")) end)
run = flow.graph("g"):add(op("FirstOp", {}, { "a" }, 0))
  :add(flow.new("inner"):needs { a = "integer" }:gives { b = "string" }:add(DropOp):add(SeeOp)):run()
check.same({ run.state, run.data.a, run.data.b }, { "succeeded", 1, "false" })
