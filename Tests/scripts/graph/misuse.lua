-- Each rule of graphs that is violated gets an error with the place, at the call where it is known there.
local flow, check = require "flow", require "check"
local function op(name, needs, gives, run) return flow.op(name, { needs = needs, gives = gives, run = run or function() end }) end
local Source = op("SourceOp", {}, { source = "string" }, function(ctx) ctx:set("source", "s") end)
local Lint = op("LintOp", { source = "string" })

local function refused(text, fn, ...)
  local ok, problem = pcall(fn, ...)
  check.equal(ok, false)
  check.equal((tostring(problem):gsub("^[^:]+:%d+: ", "")), text)
end

local g = flow.graph("g"):data { version = "1" }:add(Source):add(Lint)
refused("bad argument #1 to 'add' (graph 'g': it has a step [LintOp] already: give this one a name of its own)",
  g.add, g, Lint)
refused("bad argument #1 to 'add' (graph 'g': [OtherOp] gives <source>, as [SourceOp] does: one op gives a key)",
  g.add, g, op("OtherOp", {}, { source = "string" }))
refused("bad argument #1 to 'add' (graph 'g': [BothOp] needs and gives <x>: in a graph two values of a key have no order)",
  g.add, g, op("BothOp", { x = "string" }, { x = "string" }))
refused("bad argument #1 to 'add' (graph 'g': [VersionOp] gives <version>, which is among the graph's own data)",
  g.add, g, op("VersionOp", {}, { version = "string" }))
refused("bad argument #1 to 'data' (<source> is what [SourceOp] gives)", g.data, g, { source = "x" })
refused("bad use of 'case' (a graph has no cases: put a flow with cases into it, or give an op a condition with 'when')",
  g.case, g, "a", "b")
refused("bad use of 'otherwise' (a graph has no cases: put a flow with cases into it, or give an op a condition with 'when')",
  g.otherwise, g)
refused("bad use of 'add_parallel' (the ops of a graph run side by side anyway: add them one by one)",
  g.add_parallel, g, Lint)
refused("bad argument #2 to 'add' (field 'after': op, name, or list of these expected, got number)",
  g.add, g, op("NewOp"), { after = 1 })
refused("bad argument #2 to 'add' (field 'when': function expected, got boolean)", g.add, g, op("NewOp"), { when = true })
refused("bad argument #1 to 'add' (flow 'g' would contain itself)", g.add, g, g)
refused("bad argument #2 to 'graph' (field 'max_concurrent': integer of at least 1 expected, got 0)",
  flow.graph, "g", { max_concurrent = 0 })
refused("bad argument #2 to 'graph' (unknown field 'keepgoing' (did you mean 'keep_going'?))",
  flow.graph, "g", { keepgoing = true })
refused("bad argument #1 to 'graph' (string expected, got no value)", flow.graph)

-- At the start: circles, each op and key on them; ops that aren't there; data that an op gives.
local function fails(text, graph, data)
  local run = graph:run(data)
  check.same({ run.error.kind, run.error.message }, { "usage", text })
  check.equal(graph:check(data)[1] and graph:check(data)[1].message or text, text)
end
fails("graph 'g': its steps wait in a circle: [AOp] needs <b>, which [BOp] gives; [BOp] needs <a>, which [AOp] gives",
  flow.graph("g"):add(op("AOp", { b = "string" }, { a = "string" })):add(op("BOp", { a = "string" }, { b = "string" })))
fails("graph 'g': its steps wait in a circle: [LintOp] comes after [LintOp]", flow.graph("g"):add(Lint, { after = Lint }):add(Source))
fails("graph 'g': [LintOp] comes after [NoOp], which isn't in the graph", flow.graph("g"):add(Source):add(Lint, { after = "NoOp" }))
fails("graph 'g': <source> is among the data given, but [SourceOp] gives it", flow.graph("g"):add(Source), { source = "x" })
local second = flow.new("second")
local both = flow.graph("g"):add(flow.new("first"):add(Source)):add(second)
second:add(Source)
fails("graph 'g': [second] gives <source>, as [first] does", both)

-- In ops: keys of others, keys that weren't declared.
local function body(text, run, gives)
  local error = flow.graph("g"):add(Source):add(op("BadOp", nil, gives, run), { after = Source }):run().error
  check.same({ error.kind, (error.message:gsub("^[^:]+:%d+: ", "")) }, { "usage", text })
  check.contains(error.message, "misuse.lua:")
end
body("bad use of 'get' (<source> isn't among the needs of [BadOp]: in a graph it has to be, as [SourceOp] gives it)",
  function(ctx) ctx:get("source") end)
body("bad use of 'get' (<source> isn't among the needs of [BadOp]: in a graph it has to be, as [SourceOp] gives it)",
  function(ctx) ctx:get("source", "string?") end)
body("bad use of 'set' (<other> isn't among the gives of [BadOp]: in a graph it has to be)",
  function(ctx) ctx:set("other", 1) end)
body("bad use of 'set' (<source> isn't among the gives of [BadOp]: in a graph it has to be)",
  function(ctx) ctx:set("source", "x") end)

-- Missing data and wrong types, as for flows, and in advance.
check.contains(tostring(flow.graph("g"):add(Lint):run().error), "source")
check.equal(flow.graph("g"):add(Lint):check {}[1].message,
  "[LintOp] needs <source> (string), but nothing before provides it")
check.same(flow.graph("g"):add(op("CountOp", { source = "integer" })):add(Source):check {}[1].message,
  "[CountOp] needs <source> as integer, but [SourceOp] gives it as string")
