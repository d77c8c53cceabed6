-- Bound arguments, wrapped ops, machines, flows and the arguments of op classes are a part of an op's code; policies aren't.
local code, check = require "code", require "check"

local function same(a, b) code.same("op = " .. a, "-- Moved.\nop = " .. b, a) end
local function differs(a, b) code.differs("op = " .. a, "op = " .. b, a) end

-- Bound arguments.
local bound = 'flow.op("BoundOp", function(a, ctx) end)'
same(bound .. ' { 1, x = "y" }', bound .. ' { 1, x = "y" }')
differs(bound .. ' { 1, x = "y" }', bound .. ' { 1, x = "z" }')
differs(bound .. " (1)", bound .. " (2)")
differs(bound .. " (1)", bound)
differs(bound .. " (1)", bound .. " (1, 2)")

-- Policies, descriptions and the thread.
local function with(fields, body)
  return ('flow.op("PolicyOp", { run = function(ctx) return %s end%s })'):format(body or "1", fields)
end
same(with "", with ", retry = 3, timeout = 10, doc = 'Documented.', grace = 1")
same(with "", with ", thread = 'worker'")
same(with "", with "" .. ':with { name = "RenamedOp", retry = 2 }')
differs(with "", with("", "2"))
differs(with(", thread = 'worker'"), with(", thread = 'worker'", "2"))

-- Op classes.
local pairs_of_classes = {
  { "PrintOp('a')", "PrintOp('b')" },
  { "SleepOp(1)", "SleepOp(2)" },
  { "ExecOp { 'echo', 'a' }", "ExecOp { 'echo', 'b' }" },
  { "ExecOp({ 'cat' }, { stdin = 'a' })", "ExecOp({ 'cat' }, { stdin = 'b' })" },
  { "ExecOp({ 'cat' }, { cwd = '/' })", "ExecOp({ 'cat' })" },
  { "ExecOp({ 'cat' }, { env = { A = '1', B = '2' } })", "ExecOp({ 'cat' }, { env = { A = '1' } })" },
  { "HTTPOp { url = 'http://localhost/{a}', into = 'x' }", "HTTPOp { url = 'http://localhost/{b}', into = 'x' }" },
  { "HTTPOp { url = 'http://localhost', into = 'x' }", "HTTPOp { url = 'http://localhost', into = 'y' }" },
  { "HTTPOp { url = 'http://localhost', json = { 1 } }", "HTTPOp { url = 'http://localhost', json = { 2 } }" },
}
for _, pair in ipairs(pairs_of_classes) do
  same("flow.ops." .. pair[1], "flow.ops." .. pair[1])
  differs("flow.ops." .. pair[1], "flow.ops." .. pair[2])
end
-- A table that is changed after the call.
same("flow.ops.ExecOp { 'echo' }", "(function() local t = { 'echo' }; local op = flow.ops.ExecOp(t); t[1] = 'x'; return op end)()")

-- Wrapped ops: the wrapper's function and the op.
local function wrapped(inner, before)
  return ('flow.wrap(flow.op("InnerOp", function() return %s end), function(ctx, run) %s run() end)')
    :format(inner, before or "")
end
same(wrapped "1", wrapped "1")
differs(wrapped "1", wrapped "2")
differs(wrapped "1", wrapped("1", "ctx:log 'x'"))

-- Machines.
local function machine(step, on, back)
  return ([[flow.machine {
    name = "Machine", start = "one", max_transitions = 10,
    emit = function(result) return result end,
    flow.step("one", { run = function(state) return %s end, flow.on("yes", flow.forward "%s"),
      flow.on("no", flow.forward "two"), flow.on("maybe", flow.forward "three") }),
    flow.step("two", { run = flow.op("StepOp", function() return %s end) }),
    flow.step("three", { run = function() end }),
  }]]):format(step, on, back or 1)
end
same(machine(1, "two"), machine(1, "two"))
same(machine(1, "two"), (machine(1, "two"):gsub("= 10", "= 20")))
differs(machine(1, "two"), machine(2, "two"))
differs(machine(1, "two"), machine(1, "three"))
differs(machine(1, "two"), machine(1, "two", 2))

-- Flows, also within themselves by a variable.
local function chain(a, b)
  return ([[flow.new("Chain"):add(flow.op("AOp", function() return %s end))
    :case(function(data) return data.x == %s end):add(flow.ops.PrintOp "x"):combine()
    :add_finally(flow.ops.PrintOp "y")]]):format(a, b)
end
same(chain(1, 1), chain(1, 1))
differs(chain(1, 1), chain(2, 1))
differs(chain(1, 1), chain(1, 2))
differs(chain(1, 1), (chain(1, 1):gsub('"y"', '"z"')))

-- An op that starts a flow.
local function starts(flow) return "(function() local f = " .. flow .. " return flow.op('StartOp', function() f:run() end) end)()" end
same(starts(chain(1, 1)), starts(chain(1, 1)))
differs(starts(chain(1, 1)), starts(chain(2, 1)))
differs(starts(machine(1, "two")), starts(machine(2, "two")))

-- Nothing is known of an op of a Swift program but its name.
local testing, flow = require "flow.testing", require "flow"
check.usage(function() testing.code_digest() end, "code_digest", "op expected, got no value")
check.usage(function() testing.code_digest(3) end, "code_digest", "op expected, got number")
check.equal(testing.code_digest(flow.ops.ReadFileOp), nil)
