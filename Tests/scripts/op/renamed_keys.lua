-- Op:with { keys = … } gives keys other names at one place; the op's code stays as it is.
local flow, check = require "flow", require "check"

local ScanOp = flow.op("ScanOp", {
  needs = { path = "string", depth = "integer?" }, gives = { size = "integer" },
  run = function(ctx)
    ctx:log(ctx:get "path", ctx:get("depth", "integer?"))
    ctx:set("size", #ctx:get "path")
    ctx:set("note", "scanned")
  end,
})

-- Its declarations have the names of the place, in which it finds and leaves its data.
local there = ScanOp:with { keys = { path = "file", size = "bytes" } }
check.same(there.needs, { file = "string", depth = "integer?" })
check.same(there.gives, { bytes = "integer" })
check.equal(there.primary_output, "bytes")
local run = flow.new("f"):data { file = "report", depth = 3 }:add(there):run()
check.equal(run.error, nil)
check.equal(run.data.bytes, 6)
check.equal(run.data.note, "scanned")
check.equal(run.data.path, nil)
check.equal(run.data.size, nil)
check.contains(run:summary(), "[ScanOp] report 3\n", "add for bytes: 6")

-- Twice in one flow, the second with another name for both.
run = flow.new("f"):add(ScanOp):add(ScanOp:with { name = "OtherOp", keys = { path = "other", size = "others" } })
  :run { path = "ab", other = "abc" }
check.equal(run.data.size, 2)
check.equal(run.data.others, 3)

-- A key of its own name that the place has is another one, and isn't seen.
local seen
local PeekOp = flow.op("PeekOp", { needs = { ["path?"] = nil, path = "string?" },
  run = function(ctx) seen = ctx:has "path" end })
PeekOp:with { keys = { path = "absent" } }:run { path = "not this one" }
check.equal(seen, false)

-- A key that it needs and gives is changed in place, a secret stays one, and tables are the same ones.
local list = {}
local GrowOp = flow.op("GrowOp", { needs = { list = "table", token = "string" }, gives = { list = "table" },
  run = function(ctx)
    check.equal(rawequal(ctx:get "list", list), true)
    ctx:log(ctx:get "token")
    ctx:set("list", { "new" })
  end })
run = GrowOp:with { keys = { list = "names", token = "key" } }:run { names = list, key = flow.secret "hidden text" }
check.same(run.data.names, { "new" })
check.equal(run:summary():find("hidden text", 1, true), nil)

-- A missing need has the name of the place; so has a missing output.
run = there:start {}
pcall(run.await, run)
check.contains(run.error.message, "<file>")
local Lazy = flow.op("LazyOp", { gives = { size = "integer" }, run = function() end })
run = Lazy:with { keys = { size = "bytes" } }:start {}
pcall(run.await, run)
check.equal(run.error.kind, "missing_output")

-- With waits, retries, an undo and arguments.
local attempts, undone = 0, nil
local SlowOp = flow.op("SlowOp", { needs = { n = "integer" }, gives = { n2 = "integer" }, retry = { attempts = 2 },
  undo = function(ctx) undone = ctx:get "n" end,
  run = function(ctx, factor)
    flow.sleep(1)
    attempts = attempts + 1
    if attempts == 1 then ctx:fail "again" end
    ctx:set("n2", ctx:get "n" * factor)
  end })
run = flow.new("undone"):add(SlowOp:with { keys = { n = "amount", n2 = "result" } }(3))
  :add(flow.op("FailOp", function(ctx) ctx:fail "too late" end)):start { amount = 7 }
pcall(run.await, run)
check.equal(run.error.message, "too late")
check.equal(run.data.result, 21)
check.equal(undone, 7)

-- Stopped while it waits; its cleanups have run.
local cleaned
local WaitOp = flow.op("WaitOp", { needs = { n = "integer" }, run = function(ctx)
  ctx:defer(function() cleaned = ctx:get "n" end)
  flow.sleep(100)
end })
run = WaitOp:with { timeout = 1, keys = { n = "m" } }:start { m = 5 }
pcall(run.await, run)
check.equal(run.error.kind, "timeout")
check.equal(cleaned, 5)

-- In a group, with items under the name of the place; in a graph, where edges follow from that name.
run = flow.new("group"):data { files = { "a", "bcd" } }
  :add_grouped(ScanOp:with { keys = { path = "file" } }, { input = "files", output = "sizes", as = "file" }):run()
check.same(run.data.sizes, { 1, 3 })
local FindOp = flow.op("FindOp", { gives = { file = "string" }, run = function(ctx) ctx:set("file", "found") end })
local QuietOp = flow.op("QuietOp", { needs = { path = "string" }, gives = { size = "integer" },
  run = function(ctx) ctx:set("size", #ctx:get "path") end })
run = flow.graph("graph"):add(QuietOp:with { keys = { path = "file" } }):add(FindOp):run {}
check.equal(run.data.size, 5)

-- Flows have keys as well.
run = flow.new("outer"):add(flow.new("inner"):needs { path = "string" }:add(ScanOp):with { keys = { path = "file" } })
  :run { file = "four" }
check.equal(run.data.size, 4)

local function refused(text, options)
  local ok, problem = pcall(ScanOp.with, ScanOp, options)
  check.equal(ok, false)
  check.contains(tostring(problem), "bad argument #1 to 'with' (" .. text .. ")")
end
refused("field 'keys': table expected, got string", { keys = "path" })
refused("field 'keys': [ScanOp] neither needs nor gives <pth> (did you mean 'path'?)", { keys = { pth = "file" } })
refused("field 'keys': names of keys expected, got number", { keys = { path = 1 } })
refused("field 'keys': names of keys expected, got number", { keys = { "file" } })
refused("field 'keys': names of keys expected, got an empty one", { keys = { path = "" } })
refused("field 'keys': two keys would be <depth>", { keys = { path = "depth" } })
