-- Every parameter of machines, given each value of a list, works or raises a usage error.
-- The message begins with the place of the call. Any values that a machine's functions return
-- make a run that succeeds or fails, never anything else.
local flow = require "flow"
local here = debug.getinfo(1, "S").short_src:gsub("%p", "%%%0")
local function nothing() end

local hostile = require "values"
local values, text_of = hostile.add(hostile.all(), flow.secret "secret"), hostile.text

local function each(name, fn)
  for i = 1, values.n do
    local value = values[i]
    local ok, raised = pcall(function()
      local result = fn(value)
      return result
    end)
    if not ok then
      local what = ("%s with %s: %s"):format(name, text_of(value), tostring(raised))
      assert(type(raised) == "table" and raised.kind == "usage", what)
      assert(raised.message:find("^[^\n]-" .. here .. ":%d+: "), what)
      assert(#raised.message < 1500, what)
    end
  end
end

for _, name in ipairs { "forward", "back", "stay", "on", "next", "step", "any_step", "continue",
  "finish", "retry", "machine" } do
  each(name, function(v) flow[name](v) end)
  each(name .. " 2", function(v) flow[name]("a", v) end)
  each(name .. " list", function(v) flow[name] { v } end)
end
each("step run", function(v) flow.step("a", { run = v }) end)
each("step list", function(v) flow.step("a", { run = nothing, v }) end)
each("on 1", function(v) flow.on(v, flow.stay()) end)

local fields = { "name", "start", "emit", "reduce", "navigate", "transition", "any", "max_transitions",
  "doc", "needs", "gives", "primary_input", "primary_output", "retry", "timeout", "thread", "unknown" }
for _, field in ipairs(fields) do
  each("machine " .. field, function(v)
    local definition = { name = "m", start = "a", max_transitions = 10,
      flow.step("a", { run = field ~= "navigate" and nothing or nil }) }
    definition[field] = v
    local run = flow.machine(definition):start {}
    run:cancel()
    assert(run.error == nil or run.error.message)
  end)
end

local machine = flow.machine { name = "m", start = "a", flow.step("a", { run = nothing }) }
for _, name in ipairs { "start", "run", "continue", "dot", "mermaid", "with" } do
  each(name, function(v)
    local run = machine[name](machine, v)
    assert(name == "with" or type(run) ~= "userdata" or run.state)
  end)
  each(name .. " self", function(v) machine[name](v, v) end)
end
each("continue result", function(v) machine:continue("a", v, v) end)
for _, field in ipairs { "rankdir", "shape", "strict" } do
  each("dot " .. field, function(v) machine:dot { [field] = v } end)
end
each("field", function(v) return machine[v] end)
each("set", function(v) machine.x = v end)

-- The results of functions.
local function settles(definition, state)
  definition.name, definition.start, definition.max_transitions = "m", "a", 5
  local run = flow.machine(definition):run(state)
  assert(run.state ~= "pending")
  assert(run.ok or type(run.error.message) == "string")
end
local function a(run) return flow.step("a", { run = run, flow.on("10", flow.stay()) }) end
for i = 1, values.n do
  local function answer() return values[i], values[i] end
  local function late() flow.sleep(0) return values[i] end
  for _, fn in ipairs { answer, late } do
    settles { a(fn) }
    settles { a(nothing), emit = fn }
    settles { a(nothing), reduce = fn }
    settles { flow.step("a", { run = nothing }), transition = fn }
    settles { flow.step("a", {}), navigate = fn }
    settles { navigate = fn, transition = fn }
    settles({ a(nothing), reduce = function() return flow.finish(values[i]) end })
    settles({ a(function(state) return state end) }, values[i])
    settles({ flow.step("a", { run = flow.ops.SleepOp(0) }) }, values[i])
  end
end
