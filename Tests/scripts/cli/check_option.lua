-- The option --check checks flows and prints their plans without running any op.
-- The script ends where it needs the outcome of one.
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
  print(run.name, run.id, run, flow.checking)
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
outer	1	run: outer (checked)	true
]])
check.equal(result.status, 0)

-- Errors decide the status, also for an op that is started alone; the script continues.
result = checked [[
  flow.new("wrong"):add(BOp):run()
  BOp:run { z = 1 }
  flow.new("empty"):run()
  print "on"
]]
check.equal(result.status, 1)
check.equal(result.stderr, "")
-- Where it was added; of an op alone where it is declared.
check.equal(result.stdout, [[
$SCRIPT:6: error: [BOp] needs <z> (string), but nothing before provides it
[wrong] plan:
  1. BOp (3 attempts, timeout 5s)
]] .. result.stdout:match("\n(%$SCRIPT:4: error: [^\n]*<z>[^\n]*\n)%[BOp%]") .. [[
[BOp] plan:
  1. BOp (3 attempts, timeout 5s)
[empty] plan:
  no steps
on
]])

-- Warnings don't.
result = checked [[ flow.new("named"):add(flow.op("misnamed", print)):run() ]]
check.equal(result.status, 0)
check.match(result.stdout, "^%$SCRIPT:6: warning: the name %[misnamed%] doesn't end in 'Op'\n")
check.lacks(result.stdout, "checked")

-- For programs: a line of JSON for each finding, and nothing else on stdout.
result = host.script(ops .. [[
  flow.new("wrong"):add(BOp):run().data.x = 1
]], {}, { before = { "--check", "--json" } })
check.equal(result.status, 1)
check.contains(result.stderr, "checked 1 flow; $SCRIPT:6 needs the outcome of 'wrong'")
local finding = require "flow.json".decode(result.stdout)
check.same({ finding.line, finding.severity, finding.flow, finding.op, finding.message },
  { 6, "error", "wrong", "BOp", "[BOp] needs <z> (string), but nothing before provides it" })
check.equal(finding.file, "$SCRIPT")
check.equal(host.run(host.binary, { "--json", "-e", "" }).status, 2)

-- The first use of an outcome ends the script there, whatever encloses it. Nothing of the script
-- runs any more; the findings so far decide about the status.
result = checked [[
  local deploy, other = flow.new("deploy"):add(AOp):start { x = "1" }, flow.new("other"):run()
  local function guarded()
    local guard <close> = setmetatable({}, { __close = function() print "closed" end })
    print(xpcall(function()
      coroutine.wrap(function() print(pcall(function()
        deploy:wait()
      end)) end)()
    end, print))
  end
  flow.spawn(guarded)
  print "DEPLOYED"
]]
check.equal(result.stdout, [[
[deploy] plan:
  1. AOp
[other] plan:
  no steps
checked 2 flows; $SCRIPT:11 needs the outcome of 'deploy'
]])
check.equal(result.stderr, "")
check.equal(result.status, 0)
result = checked [[ print(flow.new("wrong"):add(BOp):run().ok) ]]
check.equal(result.status, 1)
check.contains(result.stdout, "\nchecked 1 flow; $SCRIPT:6 needs the outcome of 'wrong'\n")

-- All that shows an outcome does.
for _, use in ipairs {
  "run.ok", "run.data", "run.error", "run.result", "run.state", "run.completed", "run.faulted",
  "run.cancelled", "run.duration", "run.finished_early", "run:await()", "run:wait()", "run:wait(1)",
  "run:cancel()", "run:summary()", "run:events()", "run:dot()", "run:next(print)",
  "run:next_on_success(print)", "run:next_on_error(print)", "run:finally(print)",
  "run:finally_on_success(print)", "flow.when_all_succeed { run }", "flow.when_all_finish { run }",
  "flow.when_any_finish { flow.resolved(1), run }", "flow.spawn(function() return run end)",
  "flow.resolved(1):next(function() return run end):await()", "pcall(run.await, run)",
  "require 'flow.testing'.run(AOp, { data = { x = '' }, replace = { LaterOp = print } }).ok",
} do
  result = checked(("local run = AOp:start { x = '' } local _ = %s print 'on'"):format(use))
  check.equal(result.stderr, "", use)
  check.contains(result.stdout, "; $SCRIPT:6 needs the outcome of 'AOp'\n")
  check.lacks(result.stdout, "on\n", "AOp runs")
end
result = checked [[ do local run <close> = AOp:start { x = "" } end print "on" ]]
check.contains(result.stdout, "\non\n")

-- So does each function that has an effect outside of ops, in the same way.
for call, name in pairs {
  ['flow.exec { "true" }'] = "exec", ['io.open("/nowhere/x", "a")'] = "open", ['io.open("/nowhere/x", "r+")'] = "open",
  ['io.output "/nowhere/x"'] = "output", ['io.popen "true"'] = "popen", ["io.tmpfile()"] = "tmpfile",
  ["os.tmpname()"] = "tmpname", ['os.execute "true"'] = "execute", ['os.remove "/nowhere/x"'] = "remove",
  ['os.rename("/nowhere/x", "/nowhere/y")'] = "rename", ['flow.fs.write(arg[0], "")'] = "fs.write",
  ["flow.fs.remove(arg[0])"] = "fs.remove", ['flow.fs.mkdir "x"'] = "fs.mkdir",
  ['flow.fs.rename(arg[0], "x")'] = "fs.rename", ['flow.fs.copy(arg[0], "x")'] = "fs.copy",
  ["flow.fs.temp_dir()"] = "fs.temp_dir", ['require "flow.json".write("x", {})'] = "json.write",
  ['for _ in flow.fs.watch "." do end'] = "fs.watch",
} do
  result = checked(("flow.new('first'):start() local cleanup <close> = setmetatable({}, { __close = print }) " ..
    "pcall(function()\n  %s end) print 'on'"):format(call))
  check.equal(result.stderr, "", call)
  check.equal(result.status, 0, call)
  check.equal(result.stdout:match "plan:\n  no steps\n(.*)",
    ("checked 1 flow; $SCRIPT:7 calls '%s' (not while checking)\n"):format(name), call)
end
-- An error that was found before is the status. Without the module it's the same.
result = checked "flow.new('wrong'):add(BOp):start() os.remove 'x'"
check.equal(result.status, 1)
check.contains(result.stdout, "checked 1 flow; $SCRIPT:6 calls 'remove' (not while checking)\n")
result = host.script("os.remove 'x'", {}, { before = { "--check" } })
check.equal(result.stdout, "checked 0 flows; $SCRIPT:1 calls 'remove' (not while checking)\n")
check.equal(result.status, 0)
-- So is a failure that nothing has looked at, and an error after which a `<close>` or a `__gc` has an effect.
for _, text in ipairs {
  "flow.spawn(function() error('a task failed', 0) end) os.remove 'x'",
  "local x = setmetatable({}, { __close = function() flow.fs.remove 'x' end })\n" ..
    "flow.spawn(function() local y <close> = x flow.sleep(1) end) error('a task failed', 0)",
  "keep = setmetatable({}, { __gc = function() os.remove 'x' end }) error('a task failed', 0)",
} do
  result = checked(text)
  check.contains(result.stderr, "a task failed")
  check.equal(result.status, 1, text)
end
-- An effect in `__gc` at the end of a script changes nothing.
result = checked "keep = setmetatable({}, { __gc = function() os.remove 'x' end }) flow.new('first'):start()"
check.equal(result.stdout, "[first] plan:\n  no steps\n")
check.equal(result.status, 0)
-- A worker raises an error: the script may continue without it. So does a continuation for other nodes, which is
-- executed here.
result = checked [[
  for _, thread in ipairs { "worker", "remote" } do
    print(select(2, pcall(function()
      flow.resolved():next(thread, function() require "flow".exec { "true" } end):await()
    end)))
  end
]]
check.equal(select(2, result.stdout:gsub("bad use of 'exec' %(not while checking%)", "")), 2, result.stdout)
check.equal(require "flow".checking, false)

-- Reading isn't an effect.

result = checked [[
  print(io.open(arg[0]):read "l", os.execute())
  local fs, json, csv = flow.fs, require "flow.json", require "flow.csv"
  print(fs.read(arg[0]):match "[^\n]*", fs.exists(arg[0]), fs.stat(arg[0]).type, #fs.list(arg[0]:match ".*/", { recursive = false }) > 0)
  print(#fs.hash(arg[0]))
  -- They have read it: it is neither JSON nor CSV.
  for _, call in ipairs {
    function() json.read(arg[0]) end, function() for _ in json.lines { path = arg[0] } do end end,
    function() for _ in csv.rows { path = arg[0] } do end end,
  } do print((tostring(select(2, pcall(call))):match "expected")) end
]]
check.equal(result.stderr, "")
check.contains(result.stdout, '  local flow = require "flow"\ttrue\n',
  '  local flow = require "flow"\ttrue\tfile\ttrue\n64\nexpected\nexpected\nexpected\n')

-- The lines of a session continue: there it is an error.
result = host.run(host.binary, { "--check", "-i" }, {
  stdin = "run = flow.new('a'):start()\nrun.ok\nprint 'on'\n",
})
check.contains(result.stderr, "the outcome of 'a' isn't known while checking")
check.contains(result.stdout, "\non\n")

-- There is nothing to sum up.
result = host.script(ops .. [[ flow.new("a"):start() ]], {}, { before = { "--check", "--summary" } })
check.equal(result.stdout, "[a] plan:\n  no steps\n")
check.equal(result.stderr, "")

-- In workers, too, Lua's functions have no effects.
result = checked [[
  local function try() return select(2, pcall(os.remove, "/nonexistent/file")) end
  print(flow.resolved(1):next("worker", try):await())
  print(flow.resolved(1):next("worker", function() return select(2, pcall(io.open, "/nonexistent/file", "w")) end):await())
]]
check.equal(result.stderr, "")
check.equal(result.stdout, "bad use of 'remove' (not while checking)\nbad use of 'open' (not while checking)\n")
