-- Final steps and undos are executed in each process, with all that they execute, and what was undone isn't kept.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local function op(name, run) return flow.op(name, function(ctx) effect(name) if run then run(ctx) end end) end
local Delete = op "Delete"
local Create = flow.op("Create", {
  run = function() effect "Create" end, undo = function() Delete:run() end,
})
local Wrapped = flow.wrap(op "Inner", function(_, run) run() end)
flow.new("work"):add(op "First"):add(Create)
  :add(op("Fails", function(ctx) ctx:fail "no" end))
  :add_finally(flow.new("tidy"):add(op "Remove"):add(Wrapped))
  :add_finally(op("Starts", function() op("Child"):run() end)):run()
]]
script:run { "--keep" }
script:expect_effects("First", "Create", "Fails", "Delete", "Remove", "Inner", "Starts", "Child")
script:resume()
script:expect_effects("Create", "Fails", "Delete", "Remove", "Inner", "Starts", "Child")

-- The undo of a flow undoes what is within it.
script = kept.script [[
local function op(name) return flow.op(name, function() effect(name) end) end
local make = flow.new("make"):add(op "Make"):with { undo = function() effect "unmake" end }
local machine = flow.machine { name = "m", start = "a", undo = function() effect "unmachine" end,
  flow.step("a", { run = function() effect "step" return {} end }) }
flow.new("work"):add(op "First"):add(make):add(machine)
  :add(flow.op("Fails", function(ctx) effect "Fails" if os.getenv "FAIL" then ctx:fail "no" end end)):run()
]]
script:run { "--keep", environment = { FAIL = 1 } }
script:expect_effects("First", "Make", "step", "Fails", "unmachine", "unmake")
script:resume()
script:expect_effects("Make", "step", "Fails")

-- An op around a flow with ops side by side has set what they set.
script = kept.script [[
local A = flow.op("A", function(ctx) ctx:set("a", ctx:get "given") end)
local B = flow.op("B", function(ctx) ctx:set("b", 2) end)
local both = flow.wrap(flow.new("both"):add_parallel(A, B), function(_, run) effect "both" run() end)
flow.new("work"):data { given = arg[1] }:add(both)
  :add(flow.op("Last", function(ctx) print(ctx:get "a", ctx:get "b") ctx:fail "no" end)):run()
]]
for _, word in ipairs { "x", "x", "y", "y" } do
  check.equal(script:run({ "--resume", arguments = { word } }).stdout, word .. "\t2\n")
end
script:expect_effects("both", "both")

-- Checking a script and testing its ops leave its kept runs alone.
script = kept.script [[
local A = flow.op("A", function(ctx) effect "A" ctx:set("a", 1) end)
require("flow.testing").run(A)
flow.new("work"):add(A):add(flow.op("B", function(ctx) effect "B" if os.getenv "FAIL" then ctx:fail "no" end end)):run()
]]
script:run { "--keep", environment = { FAIL = 1 } }
script:expect_effects("A", "A", "B")
check.equal(script:run({ "--resume", "--check" }).status, 0)
script:effects()
script:resume()
script:expect_effects("A", "B")
