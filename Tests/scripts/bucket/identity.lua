-- Tables and other objects come back as the same value.
local flow, check = require "flow", require "check"
local metatable = { __gc = function() end }
local values = {
  table = {}, with_metatable = setmetatable({}, metatable), fn = function() end, builtin = print,
  thread = coroutine.create(print), file = io.stderr, class = flow.op("AnOp", print),
}
local CheckOp = flow.op("CheckOp", function(ctx)
  collectgarbage()
  for name, value in pairs(values) do
    assert(rawequal(ctx:get(name), value), name)
    ctx:set(name .. "_again", value)
  end
end)
local run = flow.new("identity"):add(CheckOp):run(values)
assert(run.ok, run.error)
for name, value in pairs(values) do
  assert(rawequal(run.data[name], value) and rawequal(run.data[name .. "_again"], value), name)
end
check.equal(getmetatable(run.data.with_metatable), metatable)
