-- Its store, `store.sqlite` and `key`, was written by flowlua 1.0.0 with Lua 5.4.4: `FAIL=1 flowlua --keep script.lua`.
-- Neither is ever changed: a test continues the run with the present version. A later version adds a folder of its own.
local flow = require "flow"

local ValuesOp = flow.op("ValuesOp", { gives = { name = "string" }, run = function(ctx)
  print "ValuesOp"
  ctx:set("name", "Ada \0\255\u{e9}")
  ctx:set("numbers", { 1, -2, math.maxinteger, math.mininteger, 0.1, -0.0, 1e300, math.huge })
  ctx:set("nested", { list = { { 1 }, {}, { a = { b = { true, false } } } }, [2.5] = "x", [-1] = "y" })
  ctx:set("long", ("0123456789"):rep(1000))
  ctx:set("gone", 1)
  ctx:set("gone", nil)
end })

local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, gives = { square = "number" },
  run = function(ctx, offset)
    print("ItemOp " .. ctx.index)
    ctx:set("square", ctx:get "item" ^ 2 // 1 + offset)
  end })

local WorkerOp = flow.op("WorkerOp", { thread = "worker", needs = { item = "integer" }, gives = { half = "number" },
  run = function(ctx)
    print("WorkerOp " .. ctx.index)
    ctx:set("half", ctx:get "item" / 2)
  end })

local machine = flow.machine {
  name = "door", start = "closed",
  flow.step("closed", { run = function(state) print "closed"; return { key = state.name } end,
    flow.next(flow.forward "open") }),
  flow.step("open", { run = function(state) print "open"; return { opened = true, key = state.key } end }),
}

local OnceOp = flow.op("OnceOp", { effect = "once", run = function(ctx)
  print "OnceOp"
  ctx:set("receipt", 17)
end })

local UndoneOp = flow.op("UndoneOp", { undo = function() print "undo of UndoneOp" end, run = function(ctx)
  print "UndoneOp"
  ctx:set("undone", true)
end })

local LastOp = flow.op("LastOp", function(ctx)
  print "LastOp"
  if os.getenv "FAIL" then ctx:fail("no network", { code = 7 }) end
end)

local inner = flow.new("inner"):add(UndoneOp):add(LastOp)
local run = flow.new("all"):data { items = { 1, 2, 3 } }
  :add(ValuesOp)
  :add_grouped(ItemOp(0), { input = "items", output = "squares" })
  :add_grouped(WorkerOp, { input = "items", output = "halves" })
  :add(machine)
  :add(OnceOp)
  :add_parallel(flow.op("LeftOp", function() print "LeftOp" end), flow.op("RightOp", function() print "RightOp" end))
  :add(inner)
  :run()

if not run.ok then error(run.error) end
local d = run.data
print(#d.name, d.name:byte(-3, -1))
for i, number in ipairs(d.numbers) do print(i, math.type(number), number) end
print(#d.nested.list, d.nested.list[3].a.b[1], d.nested[2.5], d.nested[-1], #d.long, d.gone)
print(table.concat(d.squares, " "), table.concat(d.halves, " "), d.opened, #d.key, d.receipt, d.undone)
