-- An error from deep calls, coroutines, closing variables or a full stack fails the op.
local flow, check = require "flow", require "check"
local closed
local cases = {
  { "deep", function() local function f(n) if n == 0 then error("deep") end f(n - 1) return n end f(1000) end },
  { "in a coroutine", function() coroutine.wrap(function() error("in a coroutine") end)() end },
  { "in close", function() local t <close> = setmetatable({}, { __close = function() error("in close") end }) end },
  { "first", function() local t <close> = setmetatable({}, { __close = function() closed = true end }) error("first") end },
  { "stack overflow", function() local function f() return 1 + f() end f() end },
  { "in sort", function() table.sort({ 3, 1, 2 }, function() error("in sort") end) end },
  { "bad argument #1 to 'insert'", function() table.insert() end },
  { "attempt to call a nil value", function() undefined_function() end },
}
for _, case in ipairs(cases) do
  local run = flow.op("FailOp", case[2]):run()
  check.equal(run.ok, false, case[1])
  check.contains(run.error.message, case[1])
end
check.equal(closed, true)
