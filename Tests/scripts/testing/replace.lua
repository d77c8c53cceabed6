-- Ops are replaced by name, anywhere, by functions, ops, flows and tables of data.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local function real() error("the real one ran", 0) end
local AOp, BOp, COp = flow.op("AOp", real), flow.op("BOp", real), flow.op("COp", real)
local UploadOp = flow.op("UploadOp", {
  needs = { image = "string" }, gives = { url = "string" }, retry = 2, run = real,
})
local calls = {}
local function note(name) return function() calls[#calls + 1] = name end end

local inner = flow.new("inner"):add(BOp)
local machine = flow.machine {
  name = "machine", start = "one",
  flow.step("one", { run = COp, flow.next(flow.forward "two") }),
  flow.step("two", { run = flow.new("deep"):add(BOp) }),
}
local StartOp = flow.op("StartOp", function() AOp:run() end)
local all = flow.new("all")
  :data { images = { "a", "b", "c" }, plan = "pro" }
  :add(AOp):add(AOp, { timeout = 5 }):add(inner):add(machine)
  :case("plan", "pro"):add(BOp):otherwise():add(COp):combine()
  :add_parallel(AOp, COp)
  :add_grouped(UploadOp, { input = "images", output = "urls" })
  :add(StartOp)
  :add_finally(COp)
local run = testing.run(all, {
  replace = {
    AOp = note "a", BOp = note "b", COp = note "c",
    UploadOp = function(ctx) flow.sleep(1); ctx:set("url", "url of " .. ctx:get "image") end,
  },
})
assert(run.ok, run.error)
check.equal(table.concat(calls), "aabcbbacac")
check.same(run.data.urls, { "url of a", "url of b", "url of c" })
check.equal(run.duration, 1.0)
check.contains(run:summary(), "[AOp] WillStart", "[UploadOp #3] DidFinish: successfully")

-- Nothing stays replaced.
check.equal(testing.run(AOp).error.message, "the real one ran")

-- A fake is checked as the op that it stands for, has its name, and is tried as often.
local tries = 0
run = testing.run(UploadOp, {
  data = { image = "x" },
  replace = { UploadOp = function() tries = tries + 1 end },
})
check.equal(run.error.kind, "missing_output")
check.equal(tries, 2)
run = testing.run(UploadOp, { replace = { UploadOp = { url = "u" } } })
check.equal(run.error.kind, "insufficient_input")

-- An op, a flow, a table of data.
local FakeOp = flow.op("FakeOp", function(ctx) ctx:set("url", "from " .. ctx.name) end)
run = testing.run(UploadOp, { data = { image = "x" }, replace = { UploadOp = FakeOp } })
check.equal(run.data.url, "from UploadOp")
run = testing.run(flow.new("one"):add(UploadOp),
  { data = { image = "x" }, replace = { UploadOp = flow.new("fake"):add(FakeOp) } })
check.equal(run.data.url, "from FakeOp")
check.contains(run:summary(), "[UploadOp] WillStart", "[UploadOp] DidFinish: successfully")
run = testing.run(UploadOp, { data = { image = "x" }, replace = { UploadOp = { url = "u" } } })
check.equal(run.data.url, "u")
-- Data for a stream are its items, also more than are unread at a time; in a flow they are a list, as nothing writes streams there.
local SumOp = flow.op("SumOp", { needs = { rows = "stream<integer>" }, gives = { sum = "integer" }, run = function(ctx)
  local sum = 0
  for row in ctx:get "rows" do sum = sum + row end
  ctx:set("sum", sum)
end })
local WriteOp = flow.op("WriteOp", { gives = { rows = "stream<integer>", count = "integer" },
  run = function() error "the real one ran" end })
local import = flow.graph("import"):add(WriteOp, { buffer = 2 }):add(SumOp)
run = testing.run(import, { replace = { WriteOp = { rows = { 1, 2, 3, 4 }, count = 4 } } })
assert(run.ok, run.error)
check.equal(run.data.sum, 10)
check.equal(run.data.count, 4)
check.equal(run.data.rows, nil)
run = testing.run(import, { replace = { WriteOp = { rows = {}, count = 0 } } })
check.equal(run.data.sum, 0)
run = testing.run(flow.new("import"):add(WriteOp):add(SumOp), { replace = { WriteOp = { rows = { 1, 2 }, count = 2 } } })
check.equal(run.data.sum, 3)
run = testing.run(import, { replace = { WriteOp = { rows = { 1, "two" }, count = 2 } } })
check.equal(run.error.kind, "mismatched_output")
check.contains(run.error.message, "<rows[2]>")
run = testing.run(import, { replace = { WriteOp = { rows = 1, count = 1 } } })
check.equal(run.error.kind, "mismatched_output")
check.contains(run.error.message, "<rows>", "list of the stream's items")
-- A flow by a function, as it is an op too.
run = testing.run(flow.new("outer"):add(inner), { replace = { inner = { done = true } } })
assert(run.ok and run.data.done)
-- Ops written in Swift.
run = testing.run(flow.new("exec"):add(flow.ops.ExecOp { "false" }),
  { replace = { ExecOp = { status = 0, stdout = "fake", stderr = "" } } })
check.equal(run.data.stdout, "fake")
