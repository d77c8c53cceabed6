-- `overlap` says what a second start of an op does while the first one runs: join, queue, replace or refuse.
local flow, check = require "flow", require "check"

local seen = {}
local DeployOp = flow.op("DeployOp", { needs = { n = "integer" }, run = function(ctx)
  local n = ctx:get "n"
  seen[#seen + 1] = "begin " .. n
  ctx:defer(function() seen[#seen + 1] = "end " .. n end)
  flow.sleep(10)
  ctx:set("done", n)
end })
local function reset() local before = seen seen = {} return before end

-- Joining: the run that is there, whatever the data; another one once it has ended.
local first = DeployOp:start({ n = 1 }, { overlap = "join" })
check.equal(DeployOp:start({ n = 2 }, { overlap = "join" }), first)
check.equal(DeployOp:run({ n = 3 }, { overlap = "join" }).data.done, 1)
check.equal(DeployOp:run({ n = 4 }, { overlap = "join" }).data.done, 4)
check.same(reset(), { "begin 1", "end 1", "begin 4", "end 4" })

-- A queue: one after another, in the order of their starts.
local started = flow.now()
local runs = {}
for n = 1, 3 do runs[n] = DeployOp:start({ n = n }, { overlap = "queue" }) end
check.same(seen, { "begin 1" })
check.equal(runs[2].state, "pending")
flow.when_all_finish(runs):await()
check.same(reset(), { "begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3" })
check.equal(flow.now() - started, 30.0)
-- One that is cancelled while it waits leaves its place.
for n = 1, 3 do runs[n] = DeployOp:start({ n = n }, { overlap = "queue" }) end
runs[2]:cancel()
flow.when_all_finish(runs):await()
check.same(reset(), { "begin 1", "end 1", "begin 3", "end 3" })

-- Replacing: those before it are cancelled, and it begins after their cleanups.
for n = 1, 3 do runs[n] = DeployOp:start({ n = n }, { overlap = "replace" }) end
flow.when_all_finish(runs):await()
check.equal(runs[1].state, "cancelled")
check.contains(runs[1].error.message, "replaced by a later start")
check.equal(runs[3].ok, true)
check.same(reset(), { "begin 1", "end 1", "begin 3", "end 3" })

-- Refusing: an error that a script can catch.
first = DeployOp:start({ n = 1 }, { overlap = "refuse" })
local ok, problem = pcall(DeployOp.start, DeployOp, { n = 2 }, { overlap = "refuse" })
check.equal(ok, false)
check.equal(problem.kind, "error")
check.contains(problem.message, "'DeployOp' runs already")
first:await()
check.equal(DeployOp:run({ n = 2 }, { overlap = "refuse" }).ok, true)
reset()

-- Keys have lines of their own; an op with another name, and a start without the option, too.
runs = {
  DeployOp:start({ n = 1 }, { overlap = "queue", key = "shop" }),
  DeployOp:start({ n = 2 }, { overlap = "queue", key = "blog" }),
  DeployOp:start({ n = 3 }, { overlap = "queue" }),
  DeployOp:start { n = 4 },
  DeployOp:with({ name = "OtherOp" }):start({ n = 5 }, { overlap = "queue" }),
}
check.equal(#seen, 5)
flow.when_all_finish(runs):await()
reset()

-- Flows as well; within an op; a failure doesn't stop the line.
local count = 0
local pipeline = flow.new("pipeline"):add(flow.op("FailOp", function(ctx)
  count = count + 1
  flow.sleep(1)
  ctx:fail "no"
end))
local outer = flow.op("OuterOp", function()
  local all = {}
  for i = 1, 2 do all[i] = pipeline:start({}, { overlap = "queue" }) end
  flow.when_all_finish(all):await()
end):run {}
check.equal(outer.ok, true)
check.equal(count, 2)

local function refused(text, options)
  ok, problem = pcall(DeployOp.start, DeployOp, { n = 1 }, options)
  check.equal(ok, false)
  check.contains(tostring(problem), text)
end
refused("bad argument #2 to 'start' (field 'overlap': one of 'join', 'queue', 'replace', 'refuse' expected, got 'wait')",
  { overlap = "wait" })
refused("field 'overlap'", { overlap = 1 })
refused("field 'key': string expected, got boolean", { overlap = "join", key = true })
refused("field 'key': it has no effect without 'overlap'", { key = "shop" })

-- A test doesn't see the runs of its script, nor the script those of a test.
local testing = require "flow.testing"
first = DeployOp:start({ n = 1 }, { overlap = "refuse" })
local inner = testing.run(flow.op("InnerOp", function()
  DeployOp:start({ n = 2 }, { overlap = "refuse" }):await()
end))
assert(inner.ok, inner.error)
first:await()

-- Very many places, and very many runs of one, take time in proportion to their number.
local many = {}
local ShortOp = flow.op("ShortOp", function() flow.sleep(1) end)
for i = 1, 5000 do
  many[#many + 1] = ShortOp:start({}, { overlap = "join", key = tostring(i) })
  many[#many + 1] = ShortOp:start({}, { overlap = "queue" })
end
check.equal(ShortOp:start({}, { overlap = "join", key = "5000" }), many[#many - 1])
many[#many]:cancel()
flow.when_all_finish(many):await()
