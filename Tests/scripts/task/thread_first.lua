-- The five continuations accept a thread as first argument or as an option after the function.
local check = require "check"
local flow = require "flow"

local order = {}
local function note(what) return function() order[#order + 1] = what end end
for _, name in ipairs { "next", "next_on_success", "finally", "finally_on_success" } do
  order = {}
  local task = flow.resolved(7)
  local later = task[name](task, "main", note "main")
  task[name](task, "immediate", note "immediate")
  check.same(order, { "immediate" }, name)
  later:await()
  check.same(order, { "immediate", "main" }, name)
end
order = {}
local failed = flow.failed "no"
local later = failed:next_on_error("main", note "main")
failed:next_on_error("immediate", note "immediate")
later:await()
check.same(order, { "immediate", "main" })

check.equal(flow.resolved(6):next_on_success("worker", function(n) return n * 7 end):await(), 42)
check.equal(flow.resolved(6):next("worker", function(task) return task.result * 7 end):await(), 42)
check.equal(flow.spawn(flow.sleep, 0.001):next("main", function() return "slept" end):await(), "slept")
local op = flow.op("AnOp", function(ctx) ctx:set("n", 1) end)
check.equal(op:start():next_on_success("main", function(data) return data.n end):await(), 1)

local task = flow.resolved()
check.raises(function() task:next("mian", print) end, "thread_first.lua:",
  [[bad argument #1 to 'next' ("main", "immediate", "worker" or "remote" expected, got "mian")]])
check.raises(function() task:finally "main" end,
  "bad argument #2 to 'finally' (function expected, got no value)")
check.raises(function() task:next("main", "main") end,
  "bad argument #2 to 'next' (function expected, got string)")
check.raises(function() task:next("main", print, { thread = "main" }) end,
  "bad argument #3 to 'next' (the thread is given already, got table)")
check.raises(function() task:next(5) end, "bad argument #1 to 'next' (function expected, got number)")
check.raises(function() task:next("worker", function() return order end) task:next("worker", print, 1) end,
  "thread_first.lua:")
