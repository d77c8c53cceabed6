-- Metamethods may wait.
local flow, check = require "flow", require "check"
local function waiting(result) return function() flow.sleep(0.001) return result end end
local object = setmetatable({}, {
  __index = function(_, key) flow.sleep(0.001) return "field " .. key end,
  __newindex = function(t, key, value) flow.sleep(0.001) rawset(t, key, value) end,
  __call = function(_, x) flow.sleep(0.001) return x end,
  __add = waiting("sum"), __concat = waiting("joined"), __len = waiting(42), __unm = waiting("minus"),
  __eq = waiting(true), __lt = waiting(true), __le = waiting(false),
})
local other = setmetatable({}, getmetatable(object))
local function all()
  check.equal(object.x, "field x")
  object.y = 1
  check.equal(rawget(object, "y"), 1)
  object.y = nil
  check.equal(object("called"), "called")
  check.equal(object + 1, "sum")
  check.equal(object .. "x", "joined")
  check.equal(#object, 42)
  check.equal(-object, "minus")
  check.equal(object == other, true)
  check.equal(object < other, true)
  check.equal(object <= other, false)
  local closed = false
  do
    local guard <close> = setmetatable({}, { __close = function() flow.sleep(0.001) closed = true end })
  end
  check.equal(closed, true)
end
all()
local run = flow.op("AllOp", all):run()
assert(run.ok, run.error)
