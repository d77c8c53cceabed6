-- Endless execution of Swift ops ends at its timeout and at Ctrl-C.
-- clock: real: busy code is stopped by the machine's clock
local flow, check = require "flow", require "check"
local host = require "host"
local PrintOp = flow.ops.PrintOp "x"

local machine = flow.machine { name = "m", start = "a", max_transitions = math.maxinteger,
  flow.step("a", { run = PrintOp, flow.next(flow.stay()) }) }
local function ends(op)
  local run = op:with { timeout = 0.2 }:run {}
  check.equal(run.error.kind, "timeout")
  check.equal(run.duration < 10, true, "duration")
end
ends(machine)
-- As a step, and in an op.
ends(flow.new("f"):add(machine))
local run = flow.op("OuterOp", { timeout = 0.2, run = function() machine:run {} end }):run()
check.equal(run.error.kind, "timeout")
-- A group of very many items, and a flow of flows.
local many = {}
for i = 1, 3000 do many[i] = 1 end
local GroupOp = flow.new("items"):data { ns = many }:add_grouped(PrintOp, { input = "ns", as = "n" })
local again = flow.machine { name = "again", start = "a", max_transitions = math.maxinteger,
  flow.step("a", { run = GroupOp, flow.next(flow.stay()) }) }
ends(again)
local empty = flow.new("empty")
for _ = 1, 14 do
  local outer = flow.new("outer")
  for _ = 1, 4 do outer:add(empty) end
  empty = outer
end
ends(empty)

-- The first Ctrl-C.
local text = [[
  local flow = require "flow"
  local machine = flow.machine { name = "m", start = "a", max_transitions = math.maxinteger,
    flow.step("a", { run = flow.ops.PrintOp "x", flow.next(flow.stay()) }) }
  io.stderr:write "ready\n"
  print(pcall(function() machine:run {} return 1 end))
  print "after"]]
local result = host.run("bash", { "-c", [[
  output=$(mktemp)
  "$1" -e "$2" >"$output" 2>&1 &
  process=$!
  until grep -q ready "$output"; do sleep 0.01; done
  sleep 0.1
  kill -s INT $process
  wait $process
  status=$?
  cat "$output"
  rm "$output"
  exit $status]], "bash", host.binary, text })
check.contains(result.stdout, "interrupted!", "after")
check.equal(result.status, 0)
