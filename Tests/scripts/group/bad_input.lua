-- A missing key and a value that isn't a list are input errors of the group.
local flow, check = require "flow", require "check"
local AnOp = flow.op("AnOp", { needs = { n = "any" }, run = function() end })
local function kind_of(data)
  local run = flow.new("bad"):data(data):add_grouped(AnOp, { input = "list" }):run()
  check.equal(run.ok, false)
  return run.error.kind
end
check.equal(kind_of {}, "insufficient_input")
check.equal(kind_of { lists = { 1 } }, "insufficient_input")
for _, value in ipairs { 42, "text", true, coroutine.create(print), { key = 1 }, { 1, nil, 3 }, { [2] = 1 } } do
  check.equal(kind_of { list = value }, "mismatched_input")
end
