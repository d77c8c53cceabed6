-- An undone op has another `ctx.key` when a retry executes it again; an op that wasn't undone keeps its own.
local flow, check = require "flow", require "check"

local keys
local function op(name, undoes)
  local function note(ctx) table.insert(keys, { name = name, key = ctx.key }) end
  return flow.op(name, {
    run = note,
    undo = undoes and function(ctx) table.insert(keys, { name = "undo " .. name, key = ctx.key }) end,
  })
end
local attempts
local FailsOp = flow.op("FailsOp", function(ctx)
  attempts = attempts + 1
  if attempts < 3 then ctx:fail "no" end
end)

-- The keys of an op and of its undo, in order.
local function keys_of(name)
  local found = {}
  for _, entry in ipairs(keys) do
    if entry.name == name then found[#found + 1] = entry.key end
  end
  return found
end
local function differ(list)
  local seen = {}
  for _, key in ipairs(list) do
    check.equal(seen[key], nil)
    seen[key] = true
  end
end

local UndoneOp, PlainOp, StepOp = op("UndoneOp", true), op "PlainOp", op("StepOp", true)
local inner = flow.new("inner"):add(op "WithinOp"):add(op("BothOp", true)):with { undo = function() end }
local machine = flow.machine { name = "m", start = "a", flow.step("a", { run = StepOp }) }
local wrapped = flow.wrap(op("WrappedOp", true), function(_, run) run() end)
local function start()
  keys, attempts = {}, 0
  local run = flow.new("work"):with { retry = 3 }:data { list = { 1, 2 } }
    :add(UndoneOp):add(PlainOp):add(inner):add(machine):add(wrapped)
    :add_grouped(op("ItemOp", true), { input = "list", as = "n", max_concurrent = 1 })
    :add(FailsOp):run()
  check.equal(run.ok, true)
  return keys
end
start()
for _, name in ipairs { "UndoneOp", "BothOp", "StepOp", "WrappedOp" } do
  local executed, undone = keys_of(name), keys_of("undo " .. name)
  check.equal(#executed, 3, name)
  differ(executed)
  -- An undo has the key of what it undoes.
  check.equal(undone[1], executed[1], name)
  check.equal(undone[2], executed[2], name)
end
check.equal(#keys_of "ItemOp", 6)
differ(keys_of "ItemOp")
-- The ops that a flow has executed are undone by the undo of the flow.
differ(keys_of "WithinOp")
local plain = keys_of "PlainOp"
check.equal(plain[1], plain[2])
check.equal(plain[1], plain[3])
