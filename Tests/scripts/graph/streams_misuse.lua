-- Each rule of streams that is violated gets an error that names the function, the argument, and what came.
local flow, check = require "flow", require "check"
local function op(name, needs, gives, run) return flow.op(name, { needs = needs, gives = gives, run = run or function() end }) end
local stream = { rows = "stream<integer>" }
local Read = op("ReadOp", stream, {}, function(ctx) for _ in ctx:get "rows" do end end)

local function refused(text, fn, ...)
  local ok, problem = pcall(fn, ...)
  check.equal(ok, false)
  check.equal((tostring(problem):gsub("^[^:]+:%d+: ", "")), text)
end
local function body(text, run, gives)
  local error = flow.graph("g"):add(op("WriteOp", {}, gives or stream, run)):add(Read):run().error
  check.same({ error.kind, (error.message:gsub("^[^:]+:%d+: ", "")) }, { "usage", text })
  check.contains(error.message, "streams_misuse.lua:")
end

-- Types.
for text, problem in pairs {
  ["stream<integer>[]"] = "a stream isn't a part of another type",
  ["stream<integer>|string"] = "a stream isn't a part of another type",
  ["{ rows: stream<integer> }"] = "a stream isn't a part of another type",
  ["stream<stream<integer>>"] = "a stream isn't a part of another type",
  ["stream<integer?>"] = "an item of a stream is never nil",
  ["stream<integer"] = "'<' without '>'",
} do
  local ok, message = pcall(op, "AnOp", { rows = text })
  check.equal(ok, false, text)
  check.contains(tostring(message), problem)
end

-- ctx:emit.
body("bad argument #2 to 'emit' (item #3 of <rows>: integer expected, got string)", function(ctx)
  ctx:emit("rows", 1)
  ctx:emit("rows", 2)
  ctx:emit("rows", "three")
end)
body("bad argument #2 to 'emit' (item expected, got nil)", function(ctx) ctx:emit("rows", nil) end)
body("bad argument #2 to 'emit' (item expected, got no value)", function(ctx) ctx:emit "rows" end)
body("bad argument #1 to 'emit' (string expected, got number)", function(ctx) ctx:emit(1, 1) end)
body("bad use of 'emit' (<row> isn't a stream that [WriteOp] gives: it gives as streams only <rows>)",
  function(ctx) ctx:emit("row", 1) end)
body("bad use of 'set' (<rows> is a stream: ctx:emit gives an item of it)", function(ctx) ctx:set("rows", { 1 }) end)
body("bad use of 'emit' ([WriteOp] has ended)", function(ctx) ctx:defer(function() ctx:emit("rows", 1) end) end)
local run = flow.graph("g"):add(op("PlainOp", {}, { n = "integer" }, function(ctx) ctx:emit("n", 1) end)):run()
check.contains(run.error.message, "bad use of 'emit' (<n> isn't a stream that [PlainOp] gives: it gives no stream)")

-- In a flow, alone, in a group.
local Write = op("WriteOp", {}, stream, function(ctx) ctx:emit("rows", 1) end)
local text = "bad use of 'emit' (<rows> is a stream, which only an op of a flow.graph writes: ops of flows never overlap)"
for _, each in ipairs { Write, flow.new("f"):add(Write), flow.graph("g"):add(flow.new("f"):add(Write)) } do
  check.contains(each:run().error.message, text)
end
check.equal(flow.new("f"):add(Write):check {}[1].message,
  "[WriteOp] gives <rows> as a stream, which only an op of a flow.graph writes")
local items = op("ItemOp", { n = "integer" }, stream)
local group = flow.graph("g")
refused("bad argument #1 to 'add_grouped' (graph 'g': [ItemOp] gives <rows> as a stream, which an item of a group can't write)",
  group.add_grouped, group, items, { input = "ns", output = "all" })
run = flow.new("f"):add_grouped(items, { input = "ns", output = "all" }):run { ns = { 1 } }
check.contains(run.error.message, "[ItemOp] gives <rows> as a stream, which an item of a group can't write")

-- Options.
local g = flow.graph("g")
refused("bad argument #2 to 'add' (field 'buffer': integer of at least 1 expected, got 0)", g.add, g, Write, { buffer = 0 })
refused("bad argument #2 to 'add' (field 'buffer': [ReadOp] gives no stream, such as rows = \"stream<table>\")",
  g.add, g, Read, { buffer = 5 })
refused("bad argument #1 to 'dispatcher' (field 'ordered': boolean expected, got number)",
  flow.dispatcher, { input = "rows", ordered = 1 })
refused("bad argument #2 to 'op' (a stream isn't there for thread = \"remote\": <rows> would pass items between nodes)",
  flow.op, "FarOp", { thread = "remote", gives = stream, run = function() end })
refused("bad argument #2 to 'op' (a stream isn't there for thread = \"remote\": <rows> would pass items between nodes)",
  flow.op, "FarOp", { thread = "remote", needs = stream, run = function() end })
refused("bad argument #1 to 'with' (a stream isn't there for thread = \"remote\": <rows> would pass items between nodes)",
  Read.with, Read, { thread = "remote" })

-- Readers: two at a time, a wrong type, an op that has ended.
run = flow.graph("g"):add(op("WriteOp", {}, stream, function() flow.sleep(1) end)):add(op("TwoOp", stream, {}, function(ctx)
  local rows = ctx:get "rows"
  local first = flow.spawn(function() rows() end)
  local ok, problem = pcall(rows)
  check.equal(ok, false)
  check.contains(tostring(problem), "bad use of a stream (another coroutine is waiting in it)")
  first:await()
end)):run()
check.equal(run.state, "succeeded", tostring(run.error))
run = flow.graph("g"):add(op("WriteOp", {}, { rows = "stream<number>" }, function(ctx) ctx:emit("rows", 1) ctx:emit("rows", 2.5) end))
  :add(Read):run()
check.same({ run.error.kind, run.error.op }, { "mismatched_input", "ReadOp" })
check.contains(run.error.message, "<rows[2]> in data bucket is <2.5>")
check.equal(flow.graph("g"):add(op("WriteOp", {}, { rows = "stream<string>" })):add(Read):check {}[1].message,
  "[ReadOp] needs <rows> as stream<integer>, but [WriteOp] gives it as stream<string>")
run = flow.graph("g"):add(Read):run { rows = { 1, "two" } }
check.same({ run.error.kind, run.error.op }, { "mismatched_input", "ReadOp" })
check.equal(flow.graph("g"):add(Read):run().error.kind, "insufficient_input")
local kept
flow.graph("g"):add(op("WriteOp", {}, stream, function(ctx) for i = 1, 5 do ctx:emit("rows", i) end end))
  :add(op("KeepOp", stream, {}, function(ctx) kept = ctx:get "rows" kept() end)):run():await()
check.contains(select(2, pcall(kept)), "[KeepOp] has ended: it reads no more items of <rows>")
-- A task that reads is woken when its op ends.
for _, most in ipairs { 2, 1000 } do
  local first, problem
  run = flow.graph("g", { max_concurrent = most })
    :add(op("WriteOp", {}, stream, function(ctx) ctx:emit("rows", 1) flow.sleep(5) end))
    :add(flow.op("LeaveOp", { needs = stream, gives = { read = "integer" }, run = function(ctx)
      local rows = ctx:get "rows"
      first = rows()
      flow.spawn(function() problem = select(2, pcall(rows)) end)
      flow.sleep(1)
      ctx:set("read", 1)
    end })):run()
  check.same({ run.state, first }, { "succeeded", 1 }, tostring(run.error))
  check.contains(problem, "[LeaveOp] has ended: it reads no more items of <rows>")
end
