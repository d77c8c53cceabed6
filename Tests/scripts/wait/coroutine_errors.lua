-- An error after a wait inside a coroutine is the coroutine's.
local flow, check = require "flow", require "check"
local function use()
  local co = coroutine.create(function() flow.sleep(0.001) error("late", 0) end)
  check.same({ coroutine.resume(co) }, { false, "late" })
  check.equal(coroutine.status(co), "dead")
  local ok, message = pcall(coroutine.wrap(function() flow.sleep(0.001) error("wrapped", 0) end))
  check.equal(ok, false)
  check.equal(message, "wrapped")
  local closed
  co = coroutine.create(function()
    local guard <close> = setmetatable({}, { __close = function() flow.sleep(0.001) closed = true end })
    coroutine.yield("held")
  end)
  check.same({ coroutine.resume(co) }, { true, "held" })
  check.equal(coroutine.resume(co), true)
  check.equal(closed, true)
end
use()
local run = flow.op("UseOp", use):run()
assert(run.ok, run.error)
