-- A declared list is checked element by element, wherever Lua keeps its elements.
local flow, check = require "flow", require "check"
local function matches(type, list)
  local Op = flow.op("ListOp", { needs = { list = type }, run = function() end })
  local run = Op:run { list = list }
  assert(run.ok or run.error.kind == "mismatched_input", run.error)
  return run.ok
end
local function filled(from, to, step, value)
  local list = {}
  for i = from, to, step do list[i] = value and value(i) or i end
  return list
end
local none, object = flow.json.null, setmetatable({}, { __name = "Point" })
local coroutine = coroutine.create(print)
local lists = {
  { integers = true, list = {} }, { integers = true, list = { 1, 2, 3 } },
  { integers = true, list = filled(1, 1000, 1) }, { integers = true, list = filled(1000, 1, -1) },
  { integers = true, list = filled(1, 1025, 1) }, { integers = true, list = table.move({ 1, 2, 3 }, 1, 3, 1, { x = nil }) },
  { list = { 1, 2, 3, "x" } }, { list = { 1, 2.5 } }, { list = { 1, true } }, { list = { 1, {} } }, { list = { 1, print } },
  { list = { 1, none } }, { list = { 1, flow.secret(7) } }, { list = { [2] = 1 } }, { list = { 1, nil, 3 } },
  { list = { 1, x = 2 } }, { list = { [0] = 0, 1 } }, { list = { [-1] = 0, 1 } }, { list = { 1, [1.5] = 2 } },
  { list = filled(1, 99, 2) }, { list = filled(2, 50, 1) },
}
for place, case in ipairs(lists) do
  check.equal(matches("integer[]", case.list), case.integers or false, "list " .. place)
  check.equal(matches("integer[]?", case.list), case.integers or false, "list " .. place)
  check.equal(matches("boolean|integer[]", case.list), case.integers or false, "list " .. place)
end
-- Removed elements are in no list.
local list = filled(1, 100, 1)
for i = 60, 100 do list[i] = nil end
assert(matches("integer[]", list))
list.x = 1
assert(not matches("integer[]", list))
list.x = nil
assert(matches("integer[]", list))
list[50] = nil
assert(not matches("integer[]", list))

local short, long = "s", ("long"):rep(30)
for type, good in pairs {
  ["string[]"] = { short, long }, ["boolean[]"] = { true, false }, ["float[]"] = { 1.5, 2.0 }, ["number[]"] = { 1, 2.5 },
  ["table[]"] = { {}, object }, ["function[]"] = { print, function() end, matches }, ["Point[]"] = { object },
  ["thread[]"] = { coroutine }, ["userdata[]"] = { io.stdout, io.stderr }, ["integer[][]"] = { { 1 }, {}, { 2, 3 } },
  ["any[]"] = { 1, "x", {}, print, none, io.stdout, true, 0.5 },
} do
  assert(matches(type, good), type)
  for _, wrong in ipairs { 1, 1.5, "x", true, {}, print, coroutine, io.stdout } do
    local bad = table.move(good, 1, #good, 1, {})
    bad[#bad + 1] = wrong
    local element = type:sub(1, -3)
    local One = flow.op("OneOp", { needs = { x = element }, run = function() end })
    local run = One:run { x = wrong }
    check.equal(matches(type, bad), run.ok, type .. " with " .. tostring(wrong))
    assert(run.error == nil or run.error.kind == "mismatched_input")
  end
end
