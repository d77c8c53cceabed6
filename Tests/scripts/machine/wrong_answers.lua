-- A wrong return value of a machine's function is an error that names the step and the line.
local flow, check = require "flow", require "check"
local on, forward, back, step = flow.on, flow.forward, flow.back, flow.step
local function f() end

-- Runs a machine of these parts, which must fail as wrong use; `line` is where.
local function fails(line, definition, ...)
  definition.name, definition.start = "m", "first"
  local run = flow.machine(definition):run()
  check.equal(run.state, "failed")
  check.equal(run.error.kind, "usage")
  check.contains(run.error.message, ("wrong_answers.lua:%d: "):format(line), "machine 'm'", "'first'", ...)
end
local function here() return debug.getinfo(2, "l").currentline end

fails(here(), { emit = function() return 3 end, step("first", { run = f }) }, "'emit'", "got number")
fails(here(), { emit = function() return true end, step("first", { run = f }) }, "'emit'", "boolean")
fails(here(), { emit = function() return flow.retry() end, step("first", { run = f }) }, "flow.retry")
fails(here(), { reduce = function() end, step("first", { run = f }) }, "'reduce'", "flow.continue", "got nil")
fails(here(), { reduce = function(state) return { state } end, step("first", { run = f }) }, "got table")
fails(here(), { reduce = function() flow.sleep(0) return "x" end, step("first", { run = f }) }, "string")
fails(here(), { step("first", { run = function() return flow.finish() end }) }, "'run'", "flow.finish")
fails(here(), { transition = function() return 3 end, step("first", { run = f }) }, "'transition'")
fails(here(), { transition = function() return forward "x" end, step("first", { run = f }) }, "unknown step 'x'")
fails(here(), { transition = function() return forward "frist" end, step("first", { run = f }) },
  "unknown step 'frist' (did you mean 'first'?)")
fails(here(), { transition = function() return back() end, step("first", { run = f }) }, "empty history")
fails(here(), { step("first", { run = f, flow.next(back()) }) }, "empty history")
fails(here(), { step("first", { run = f, on("e", forward "b"), flow.next(back "b") }), step("b", { run = f }) },
  "step 'b'", "wasn't entered before")
fails(here(), { emit = function() return "e" end, step("first", { run = f }) }, "event 'e'")
fails(here(), { step("first", { run = f, on("e", flow.stay()) }) }, "without an event")

-- An op or flow needs a table for its data.
local SleepOp = flow.ops.SleepOp(0)
local m = flow.machine { name = "m", start = "first", step("first", { run = SleepOp }) }
local line = here() - 1
for _, state in ipairs { 3, "x", true, { 1 }, print } do
  local run = m:run(state)
  check.equal(run.error.kind, "usage")
  check.contains(run.error.message, ("wrong_answers.lua:%d: "):format(line), "'first'", "state")
end
check.equal(m:run().ok, true)
check.equal(m:run({}).ok, true)
