-- Tables that kept ops have changed, but not made, are the same tables after a failure, with their changes, for all that hold them.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local prelude = [[
local function shown(value)
  if type(value) ~= "table" then return tostring(value) end
  local keys, parts = {}, {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do parts[#parts + 1] = key .. "=" .. shown(value[key]) end
  return "{" .. table.concat(parts, " ") .. "}"
end
local function check(ctx) if os.getenv "FAIL" then ctx:fail "not yet" end end
]]

-- Runs a script to its end, and another time with a failure and a resume: both print this. Returns the second one's effects.
local function same(text, expected, again)
  local script = kept.script(prelude .. text)
  local result = script:run { "--keep" }
  check.equal(result.status, 0, result.stderr)
  check.equal(result.stdout, expected, text)
  script:effects()
  script = kept.script(prelude .. text)
  check.equal(script:run({ "--keep", environment = { FAIL = 1 } }).status == 0, false)
  script:effects()
  result = script:run { "--resume" }
  check.equal(result.status, 0, result.stderr)
  check.equal(result.stdout, expected, text)
  script:expect_effects(table.unpack(again or {}))
  return result.stderr
end

-- Items add to a table of the data around them, one after the other or at the same time.
for _, settings in ipairs { "needs = { n = 'integer' },", "needs = { n = 'integer', total = 'table' }, primary_input = 'n'," } do
  same(([[
local AddOp = flow.op("AddOp", { %s run = function(ctx)
  effect "add"
  local total = ctx:get "total"
  total.sum = (total.sum or 0) + ctx:get "n"
end })
local EndOp = flow.op("EndOp", function(ctx) check(ctx) print(shown(ctx:get "total")) end)
flow.new("m"):data { total = {} }:add_grouped(AddOp, { input = "ns", max_concurrent = 1 }):add(EndOp):run { ns = { 1, 2, 3 } }
]]):format(settings), "{sum=6}\n")
end

-- An item is an element of a list, and stays it.
same([[
local DoneOp = flow.op("DoneOp", { needs = { row = "table" }, run = function(ctx)
  effect "done"
  ctx:get "row".done = true
end })
local EndOp = flow.op("EndOp", function(ctx) check(ctx) print(shown(ctx:get "rows")) end)
flow.new("m"):add_grouped(DoneOp, { input = "rows" }):add(EndOp):run { rows = { { id = 1 }, { id = 2 } } }
]], "{1={done=true id=1} 2={done=true id=2}}\n")

-- An op that another one executes changes a local table of that.
same([[
local InnerOp = flow.op("InnerOp", { needs = { n = "integer", list = "table" }, run = function(ctx)
  effect "inner"
  table.insert(ctx:get "list", ctx:get "n")
end })
local OuterOp = flow.op("OuterOp", function(ctx)
  local list = {}
  for n = 1, 3 do InnerOp:run { n = n, list = list } end
  check(ctx)
  print(shown(list))
end)
flow.new("m"):add(OuterOp):run()
]], "{1=1 2=2 3=3}\n")

-- The table of the caller, and one of its data that an op sets again.
same([[
local mine, other = {}, {}
local AddOp = flow.op("AddOp", function(ctx)
  effect "add"
  table.insert(ctx:get "mine", "a")
  local other = ctx:get "other"
  other.x = 1
  ctx:set("other", other)
  ctx:set("third", other)
end)
local EndOp = flow.op("EndOp", function(ctx) check(ctx) ctx:get "third".y = 2 end)
flow.new("m"):add(AddOp):add(EndOp):run { mine = mine, other = other }
print(shown(mine), shown(other))
]], "{1=a}\t{x=1 y=2}\n")

-- One table under two keys, set by one op or by two.
same([[
local SetOp = flow.op("SetOp", function(ctx)
  effect "set"
  local t = { 1 }
  ctx:set("a", t)
  ctx:set("b", t)
end)
local NextOp = flow.op("NextOp", function(ctx) effect "next" ctx:set("c", ctx:get "b") end)
local ChangeOp = flow.op("ChangeOp", function(ctx) effect "change" ctx:get "c"[1] = 9 end)
local EndOp = flow.op("EndOp", function(ctx)
  check(ctx)
  ctx:get "a".last = true
  print(shown(ctx:get "a"), shown(ctx:get "b"), shown(ctx:get "c"))
end)
flow.new("m"):add(SetOp):add(NextOp):add(ChangeOp):add(EndOp):run()
]], ("\t{1=9 last=true}"):rep(3):sub(2) .. "\n")

-- A table that an op has changed and replaced: those that hold the first one see the change.
same([[
local first = {}
local SwapOp = flow.op("SwapOp", function(ctx)
  effect "swap"
  local t = ctx:get "t"
  t.old = true
  ctx:set("t", { new = true })
  ctx:set("before", t)
end)
local EndOp = flow.op("EndOp", function(ctx) check(ctx) print(shown(ctx:get "t"), rawequal(ctx:get "before", first)) end)
flow.new("m"):add(SwapOp):add(EndOp):run { t = first }
print(shown(first))
]], "{new=true}\ttrue\n{old=true}\n")

-- Unchanged tables within a table stay the same ones, also when they are moved, and new and cyclic ones are there.
same([[
local a, b, c = { id = "a" }, { id = "b" }, { id = "c" }
local list = { a, b, c, named = { deep = { 1 } } }
local MoveOp = flow.op("MoveOp", function(ctx)
  effect "move"
  local list = ctx:get "list"
  table.remove(list, 1)
  list[2].seen = true
  list[3] = { id = "d", back = list }
  list.twice = { list[3], list[3] }
end)
local EndOp = flow.op("EndOp", function(ctx)
  check(ctx)
  local list = ctx:get "list"
  print(shown(a), rawequal(list[1], b), list[2].id, list[2].seen)
  print(list[3].id, rawequal(list[3].back, list), rawequal(list.twice[1], list[3]), rawequal(list.twice[2], list[3]))
end)
flow.new("m"):add(MoveOp):add(EndOp):run { list = list }
]], "{id=a}\ttrue\tc\ttrue\nd\ttrue\ttrue\ttrue\n")

-- A table that takes the place of another one isn't that one, which others may hold.
same([[
local user, old = { name = "old" }, { x = 0 }
local ChangeOp = flow.op("ChangeOp", function(ctx)
  effect "change"
  ctx:get "users"[1] = { name = "new" }
  local s = ctx:get "s"
  s.pos = { x = s.pos.x + 1 }
  ctx:get "pair".b = { n = 2 }
end)
local EndOp = flow.op("EndOp", function(ctx)
  check(ctx)
  print(ctx:get "user".name, ctx:get "users"[1].name, ctx:get "s".pos.x, ctx:get "old".x)
  print(ctx:get "pair".a.n, ctx:get "pair".b.n)
end)
local one = { n = 1 }
flow.new("m"):add(ChangeOp):add(EndOp)
  :run { users = { user }, user = user, s = { pos = old }, old = old, pair = { a = one, b = one } }
]], "old\tnew\t1\t0\n1\t2\n")

-- An op that is executed only once is kept, although another one has changed a table that it has read.
local once = kept.script [[
local function wait_for(name) while not _G[name] do flow.sleep(0.001) end end
local PayOp = flow.op("PayOp", { effect = "once", run = function(ctx)
  local cfg = ctx:get "cfg"
  _G.paying = true
  wait_for "counted"
  effect("paid " .. cfg.amount)
end })
local StatOp = flow.op("StatOp", function(ctx) wait_for "paying" ctx:get "cfg".seen = true end)
local CountedOp = flow.op("CountedOp", function() _G.counted = true end)
flow.new("m"):data { cfg = { amount = 5 } }:add_parallel(PayOp, flow.new("s"):add(StatOp):add(CountedOp)):run()
]]
local paid = once:run { "--keep" }
check.equal(paid.status, 0, paid.stderr)
check.contains(paid.stderr, "[PayOp] is kept with what other ops have changed: <cfg> was changed while another op used it")

-- A chain of tables may be very long.
same([[
local chain = { n = 0 }
local GrowOp = flow.op("GrowOp", function(ctx)
  effect "grow"
  local last = ctx:get "chain"
  for n = 1, 20000 do last.next = { n = n } last = last.next end
end)
local EndOp = flow.op("EndOp", function(ctx) check(ctx) end)
flow.new("m"):add(GrowOp):add(EndOp):run { chain = chain }
local count = 0
while chain do count, chain = count + 1, chain.next end
print(count)
]], "20001\n")

-- Of what two ops change at the same time nobody knows whose it is: both are executed again, after a line that says so.
local text = [[
local AddOp = flow.op("AddOp", { needs = { n = "integer" }, run = function(ctx)
  effect("add " .. ctx:get "n")
  local total = ctx:get "total"
  flow.sleep(0.01 * (4 - ctx:get "n"))
  total.sum = (total.sum or 0) + ctx:get "n"
end })
local EndOp = flow.op("EndOp", function(ctx) check(ctx) print(shown(ctx:get "total")) end)
flow.new("m"):data { total = {} }:add_grouped(AddOp, { input = "ns", max_concurrent = 3 }):add(EndOp):run { ns = { 1, 2, 3 } }
]]
check.contains(same(text, "{sum=6}\n", { "add 1", "add 2", "add 3" }),
  "[AddOp] isn't kept, so a resumed run executes it again: <total> was changed while another op used it")

-- An op that only reads a table that others change is kept, if it has read it before or after them.
same([[
local AddOp = flow.op("AddOp", function(ctx) effect "add" ctx:get "total".sum = 1 end)
local ReadOp = flow.op("ReadOp", function(ctx) effect "read" ctx:set("sum", ctx:get "total".sum) end)
local EndOp = flow.op("EndOp", function(ctx) check(ctx) print(ctx:get "sum") end)
flow.new("m"):data { total = {} }:add(AddOp):add(ReadOp):add(EndOp):run()
]], "1\n")
