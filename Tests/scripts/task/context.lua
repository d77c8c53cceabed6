-- A context settles its task once.
local flow, check = require "flow", require "check"

local c = flow.context()
local t = c.task
check.equal(c.task, t)
check.equal(t.state, "pending")
check.equal(t.completed, false)
check.equal(t.result, nil)
check.equal(t.error, nil)
check.equal(t:wait(0.001), false)
c:set_result({ 1 })
check.equal(t.state, "succeeded")
check.equal(t.completed, true)
check.equal(t.faulted, false)
check.equal(t.cancelled, false)
check.same(t.result, { 1 })
check.equal(t:await(), t.result)
check.equal(t:wait(), true)

local settled = "(its task has settled already: succeeded)"
check.usage(function() c:set_result(2) end, "bad use of 'set_result' ", settled)
check.usage(function() c:set_error("x") end, "bad use of 'set_error' ", settled)
check.usage(function() c:cancel() end, "bad use of 'cancel' ", settled)
check.equal(c:try_set_result(2), false)
check.equal(c:try_set_error("x"), false)
check.equal(c:try_cancel(), false)
check.same(t:await(), { 1 })

local d = flow.context()
check.equal(d:try_set_error("boom"), true)
check.equal(d.task.state, "failed")
check.equal(d.task.faulted, true)
check.equal(d.task.error.kind, "error")
check.equal(d.task.error.message, "boom")
check.equal(d.task.error.cause, "boom")
check.equal(check.raises(function() d.task:await() end, "boom"), d.task.error)

-- An error of the API is passed on as it is; one of kind cancelled cancels.
local e = flow.context()
e:set_error(d.task.error)
check.equal(e.task.error, d.task.error)
local f = flow.context()
f:set_error(flow.cancelled("enough").error)
check.equal(f.task.state, "cancelled")
check.equal(f.task.faulted, false)
check.equal(f.task.error.message, "cancelled: enough")

-- Any code that has the task can cancel it.
local g = flow.context()
check.equal(g.task:cancel("late"), true)
check.equal(g.task:cancel(), false)
check.equal(g.task.cancelled, true)
check.equal(g.task.error.kind, "cancelled")
check.equal(g:try_set_result(1), false)
check.equal(tostring(g.task.error), "cancelled: late")

-- A value of any kind keeps its identity; nil is a result too.
for _, value in ipairs { print, t, c, "a\0b", 1, 1.0, false, coroutine.create(print) } do
  local h = flow.context()
  h:set_result(value)
  check.equal(h.task:await(), value)
end
check.equal(flow.resolved():await(), nil)

check.contains(tostring(flow.context()), "context (pending)")
check.contains(tostring(c), "context (succeeded)")
check.contains(tostring(flow.context().task), "task at ", "context.lua:", "(pending)")
check.usage(function() c.x = 1 end, "can't set field 'x' of context")
check.equal(c.nothing, nil)
check.usage(function() c.set_result() end, "set_result", "context expected, got no value")
check.usage(function() c.set_result(t, 1) end, "set_result", "context expected, got task")
check.usage(function() flow.context():set_error() end, "set_error", "#1")
check.usage(function() flow.failed() end, "failed", "#1")
check.usage(function() flow.failed(nil) end, "failed", "#1", "got nil")
check.usage(function() flow.cancelled({}) end, "cancelled", "#1", "string expected, got table")
