-- Values are copied to a worker and back with all bytes, integer subtypes and cycles.
local flow = require "flow"
local check = require "check"

local EchoOp = flow.op("EchoOp", {
  needs = { value = "any" }, gives = { back = "any" }, thread = "worker",
  run = function(ctx) ctx:set("back", ctx:get("value")) end,
})
local function echo(value)
  local run = EchoOp:run { value = value }
  assert(run.ok, run.error and run.error.message)
  return run.data.back
end

for _, value in ipairs { 1, 1.0, -0.0, 1 / 0, math.maxinteger, math.mininteger, 2 ^ 53, true, false, "" } do
  local back = echo(value)
  check.equal(back, value)
  check.equal(math.type(back), math.type(value))
end
assert(echo(0 / 0) ~= echo(0 / 0))
local bytes = {}
for byte = 0, 255 do bytes[#bytes + 1] = string.char(byte) end
local all = table.concat(bytes)
check.equal(echo(all), all)
check.equal(#echo(all:rep(1000)), 256000)

local list = { 1, "two", { 3 }, n = 4, [1.5] = true }
list.self = list
list.again = list[3]
local back = echo(list)
assert(back ~= list and back.self == back and back.again == back[3])
check.equal(back[1], 1)
check.equal(back[2], "two")
check.equal(back[3][1], 3)
check.equal(back.n, 4)
check.equal(back[1.5], true)

-- Upvalues: functions, recursion and shared tables go with the code, as copies.
local counter = { n = 0 }
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
local FibOp = flow.op("FibOp", {
  gives = { fib = "integer", count = "integer" }, thread = "worker",
  run = function(ctx, n)
    counter.n = counter.n + 1
    ctx:set("fib", fib(n))
    ctx:set("count", counter.n)
  end,
})
local run = FibOp(15):run()
check.equal(run.data.fib, 610)
check.equal(run.data.count, 1)
check.equal(counter.n, 0)
-- Arguments of any number, with holes.
local ArgsOp = flow.op("ArgsOp", {
  gives = { n = "integer" }, thread = "worker",
  run = function(ctx, ...)
    local a, b, c = ...
    assert(a == 1 and b == nil and c.x == "y")
    ctx:set("n", select("#", ...))
  end,
})
check.equal(ArgsOp(1, nil, { x = "y" }, nil):run().data.n, 4)
