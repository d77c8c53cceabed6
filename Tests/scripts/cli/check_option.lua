-- With --check flows are checked, and their plans printed; no op of them runs.
local host = require "host"
local check = require "check"
local ops = [[
  local flow = require "flow"
  local AOp = flow.op("AOp", { needs = { x = "string" }, gives = { y = "string" },
    run = function(ctx) print "AOp runs" ctx:set("y", "1") end })
  local BOp = flow.op("BOp", { needs = { z = "string" }, gives = {}, retry = 3, timeout = 5,
    run = function() print "BOp runs" end })
]]
local function checked(text) return host.script(ops .. text, {}, { before = { "--check" } }) end

local result = checked [[
  local inner = flow.new("inner"):add(AOp)
  local run = flow.new("outer"):add(AOp):add(inner):add_parallel(AOp, BOp)
    :case("plan", "pro"):add(AOp):case(print):add(BOp):otherwise():add(BOp):combine()
    :add_grouped(AOp, { input = "xs", output = "ys", allow_failure = true }):add_finally(BOp)
    :will_start(function() print "called" end):did_finish(function() print "called" end)
    :start { x = "1", z = "2", plan = "pro", xs = { "a" } }
  run:wait()
  print(run.ok, run.state, run.data.x, run.error)
]]
check.equal(result.stderr, "")
check.equal(result.stdout, [[
[outer] plan:
  1. AOp
  2. inner:
    1. AOp
  3. at the same time:
    - AOp
    - BOp (3 attempts, timeout 5s)
  4. one of:
    - if plan is pro:
      1. AOp
    - if predicate 2 holds:
      1. BOp (3 attempts, timeout 5s)
    - otherwise:
      1. BOp (3 attempts, timeout 5s)
  5. for each of xs -> ys, 3 at a time, failures allowed:
    - AOp
  finally:
    1. BOp (3 attempts, timeout 5s)
true	succeeded	1	nil
]])
check.equal(result.status, 0)

-- Errors decide about the status, also of an op that is started alone; the script goes on.
result = checked [[
  print(flow.new("wrong"):add(BOp):run().ok)
  print(BOp:run { z = 1 }.ok)
  print(flow.new("empty"):run().ok)
]]
check.equal(result.status, 1)
check.equal(result.stderr, "")
check.equal(result.stdout, [[
[wrong] error: [BOp] needs <z> (string), but nothing before provides it
[wrong] plan:
  1. BOp (3 attempts, timeout 5s)
true
]] .. result.stdout:match("%[BOp%] error: [^\n]*<z>[^\n]*\n") .. [[
[BOp] plan:
  1. BOp (3 attempts, timeout 5s)
true
[empty] plan:
  no steps
true
]])

-- Warnings don't.
result = checked [[ flow.new("named"):add(flow.op("misnamed", print)):run() ]]
check.equal(result.status, 0)
check.contains(result.stdout, "[named] warning: ", "misnamed")
