-- A wrong definition is an error of flow.machine, at the line where it was written.
local flow, check = require "flow", require "check"
local on, forward, back, step = flow.on, flow.forward, flow.back, flow.step
local function f() end

local function bad(...)
  local parts = { ... }
  local fn = table.remove(parts, 1)
  return check.usage(fn, "machine", table.unpack(parts))
end

bad(function() flow.machine() end, "#1", "table expected")
bad(function() flow.machine { name = "m", start = "a" } end, "a machine without steps")
bad(function() flow.machine { name = "m", start = "b", step("a", { run = f }) } end,
  "start 'b' is no step")
bad(function() flow.machine { name = "m", step("a", { run = f }) } end, "field 'start'")
bad(function() flow.machine { start = "a", step("a", { run = f }) } end, "field 'name'")
bad(function() flow.machine { name = "", start = "a", step("a", { run = f }) } end, "non-empty")
bad(function() flow.machine { name = "m", start = "a", step("a", { run = f }), step("a", { run = f }) } end,
  "step 'a' is there twice")
bad(function() flow.machine { name = "m", start = "a", flow.any_step {}, flow.any_step {}, step("a", { run = f }) } end,
  "two any-steps")
bad(function() flow.machine { name = "m", start = "a", step("a", {}) } end, "'a' has nothing to run")
bad(function() flow.machine { name = "m", start = "a", step("a", { run = f }), step("b", { run = f }) } end,
  "step 'b' can't be reached")
bad(function() flow.machine { name = "m", start = "a", step("a", { run = f, flow.next(forward "x") }) } end,
  "step 'a': forward to unknown step 'x'")
bad(function() flow.machine { name = "m", start = "a", step("a", { run = f, on("e", back "x") }) } end,
  "step 'a': back to unknown step 'x'")
bad(function() flow.machine { name = "m", start = "amuont", step("amount", { run = f }) } end,
  "the start 'amuont' is no step (did you mean 'amount'?)")
bad(function()
  flow.machine { name = "m", start = "tariff", step("tariff", { run = f, flow.next(forward "tarif") }) }
end, "step 'tariff': forward to unknown step 'tarif' (did you mean 'tariff'?)")
bad(function()
  flow.machine { name = "m", start = "a", step("a", { run = f, flow.next(forward "elsewhere") }) }
end, "unknown step 'elsewhere')")
bad(function()
  flow.machine { name = "m", start = "a",
    step("a", { run = f, flow.next(flow.stay()), flow.next(forward "a") }) }
end, "second next of step 'a' can't be reached")
bad(function()
  flow.machine { name = "m", start = "a",
    step("a", { run = f, on("e", flow.stay()), on("e", forward "a") }) }
end, "handles event 'e' twice")
bad(function()
  flow.machine { name = "m", start = "a", any = "first", flow.any_step { flow.next(flow.stay()) },
    step("a", { run = f, flow.next(flow.stay()) }) }
end, "the next of step 'a' can't be reached")
bad(function()
  flow.machine { name = "m", start = "a", flow.any_step { flow.next(flow.stay()) },
    step("a", { run = f, flow.next(flow.stay()) }) }
end, "the next of the any-step can't be reached")
bad(function() flow.machine { name = "m", start = "a", any = "middle", step("a", { run = f }) } end,
  "\"first\" or \"last\"")
bad(function() flow.machine { name = "m", start = "a", max_transitions = 0, step("a", { run = f }) } end,
  "max_transitions")
bad(function() flow.machine { name = "m", start = "a", emiter = f, step("a", { run = f }) } end,
  "did you mean 'emit'")
bad(function() flow.machine { name = "m", start = "a", step("a", { run = f }), nil, 1 } end, "hole")
bad(function() flow.machine { name = "m", start = "a", { run = f } } end, "entry 1", "flow.step")
bad(function() flow.machine { name = "m", start = "a", navigate = f, step("a", { run = f }) } end,
  "the navigator performs all steps")
bad(function() flow.machine { name = "m", start = "a", transition = f, step("a", { run = f, on("e", flow.stay()) }) } end,
  "provided by a function")
bad(function() flow.machine { name = "m", start = "a", transition = f, emit = f, step("a", { run = f }) } end,
  "field 'emit'")

-- The message names the line of the part that is wrong.
local err = bad(function()
  flow.machine { name = "m", start = "a",
    step("a", { run = f,
      flow.next(forward "x") }) }
end, "unknown step 'x'")
local line = debug.getinfo(1, "l").currentline - 2
check.contains(tostring(err), (":%d: "):format(line))

-- The parts themselves.
check.usage(function() step() end, "step", "#1", "string")
check.usage(function() step("a") end, "step", "#2", "table")
check.usage(function() step("a", { run = 3 }) end, "step", "op, flow, machine or function")
check.usage(function() step("a", { run = flow.ops.PrintOp }) end, "step", "needs its arguments")
check.usage(function() step("a", { rn = f }) end, "step", "did you mean 'run'")
check.usage(function() step("a", { run = f, forward "b" }) end, "step", "entry 1", "flow.on")
check.usage(function() flow.any_step { run = f } end, "any_step", "no fields")
check.usage(function() on("e") end, "on", "#2", "transition")
check.usage(function() on(3, flow.stay()) end, "on", "#1", "string")
check.usage(function() on("", flow.stay()) end, "on", "non-empty")
check.usage(function() on("e", { kind = "sideways" }) end, "on", "transition")
check.usage(function() on("e", { kind = "stay", step = "a" }) end, "on", "transition")
check.usage(function() flow.next(f) end, "next", "transition")
check.usage(function() forward() end, "forward", "string")
check.usage(function() forward {} end, "forward", "string")
check.usage(function() back "" end, "back", "non-empty")

local m = flow.machine { name = "m", start = "a", step("a", { run = f }) }
check.usage(function() m() end, "machine", "takes no arguments")
check.usage(function() m:continue() end, "continue", "string")
check.usage(function() m:continue("b", 1, 2) end, "continue", "no step 'b'")
check.usage(function() m:dot { rankdir = "up" } end, "dot", "rankdir")
check.usage(function() m:dot { shape = "" } end, "dot", "shape")
check.usage(function() m:dot { colour = "red" } end, "dot", "unknown field")
check.usage(function() m.start(io.stdout) end, "start", "machine expected")
check.usage(function() m:with { timeout = -1 } end, "with", "timeout")
check.usage(function() m.steps = {} end, "machine", "can't set")
