-- Plain tables in a flow's data are copied for each run, nested ones, cycles and sharing included.
-- Data passed to start isn't copied.
local flow, check = require "flow", require "check"
local class = { __index = {} }
local object = setmetatable({ n = 0 }, class)
local shared = { 1 }
local list = { "a", shared, inner = { deep = { n = 1 } }, [object] = object, [shared] = "key" }
list.self = list
local seen
local AddOp = flow.op("AddOp", function(ctx)
  local mine = ctx:get "list"
  seen = mine
  check.equal(#mine, 2)
  check.equal(mine.inner.deep.n, 1)
  table.insert(mine, "more")
  mine.inner.deep.n = mine.inner.deep.n + 1
  ctx:get("object").n = ctx:get("object").n + 1
end)
local f = flow.new("f"):data { list = list, again = shared, object = object }:add(AddOp)
for round = 1, 3 do
  local run = f:run()
  assert(run.ok, run.error)
  -- The copy has the form of the original, and keys share their tables.
  assert(seen ~= list and seen.self == seen and seen[2] ~= shared)
  assert(seen[seen[2]] == "key" and run.data.again == seen[2])
  check.equal(#run.data.list, 3)
  -- A table with a metatable is no plain table.
  assert(rawequal(run.data.object, object) and rawequal(seen[object], object))
  check.equal(object.n, round)
end
check.equal(#list, 2)
check.equal(list.inner.deep.n, 1)
assert(list[2] == shared and list[shared] == "key")

-- A list with holes, whose length may be any of its borders.
local holes = {}
for i = 0, 61 do holes[1 << i] = i end
holes[5], holes[9] = 5, 9
local copied = flow.new("f"):data { holes = holes }:add(flow.op("NothingOp", function() end)):run().data.holes
for i = 0, 61 do check.equal(copied[1 << i], i) end

-- Runs at the same time don't see each other's either.
local WaitOp = flow.op("WaitOp", function(ctx)
  local mine = ctx:get "list"
  mine[#mine + 1] = "x"
  flow.sleep(0.001)
  check.equal(#mine, 3)
end)
local w = flow.new("w"):data { list = { 1, 2 } }:add(WaitOp)
local a, b = w:start(), w:start()
a:await() b:await()

-- A flow inside a flow has its own for each run as well, and a secret's table is copied like any.
local FillOp = flow.op("FillOp", function(ctx)
  local mine, hidden = ctx:get "mine", ctx:get "hidden"
  check.equal(#mine + #hidden, 0)
  mine[1], hidden[1] = 1, 1
end)
local inner = flow.new("inner"):data { mine = {}, hidden = flow.secret {} }:add(FillOp)
local outer = flow.new("outer"):add(inner)
assert(outer:run().ok and outer:run().ok)

-- start's data is the caller's.
local own = { 1 }
local run = flow.new("g"):data { list = {} }
  :add(flow.op("OwnOp", function(ctx) table.insert(ctx:get "list", 2) end)):run { list = own }
assert(run.ok and rawequal(run.data.list, own))
check.same(own, { 1, 2 })

-- However deep.
local deep = {}
for _ = 1, 100000 do deep = { deep } end
assert(flow.new("deep"):data { deep = deep }:add(flow.op("DeepOp", function() end)):run().ok)
