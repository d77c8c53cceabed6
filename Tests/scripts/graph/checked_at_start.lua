-- A graph with data that nobody gives, or with types that can't match, executes nothing.
local flow, check = require "flow", require "check"

local executed
local AOp = flow.op("AOp", { gives = { a = "integer" }, run = function(ctx)
  executed = true
  ctx:set("a", 1)
end })
local function refuses(graph, data, op, message)
  executed = false
  local run = graph:run(data)
  check.equal(run.ok, false)
  check.equal(executed, false)
  check.equal(run.error.op, op)
  check.contains(run.error.message, message)
end
local function after(needs, options)
  return flow.graph("g"):add(AOp):add(flow.op("BOp", { needs = needs, run = function() end }), options)
end

refuses(after { a = "integer", q = "integer" }, nil, "BOp", "can't find <q> in data bucket")
refuses(after { a = "integer", q = "integer" }, { q = "text" }, "BOp", "NOT type <integer>")
refuses(after { a = "string" }, nil, "g",
  "graph 'g': [BOp] needs <a> as string, but [AOp] gives it as integer")
local ItemOp = flow.op("ItemOp", { needs = { n = "integer", q = "string" }, run = function() end })
refuses(flow.graph("g"):add(AOp):add_grouped(ItemOp, { input = "ns", as = "n" }), { q = "x" }, "Group", "can't find <ns>")
refuses(flow.graph("g"):add(AOp):add_grouped(ItemOp, { input = "ns", as = "n" }), { ns = { 1 } }, "Group", "can't find <q>")
refuses(flow.graph("g"):add(AOp):add(flow.new("inner"):needs { q = "string" }), nil, "inner", "can't find <q>")

-- Data of the graph, of its start and of the flow around it are there.
for _, graph in ipairs {
  after { q = "integer" }:data { q = 1 },
  after { q = "integer?" },
  flow.new("outer"):add(flow.op("SetOp", function(ctx) ctx:set("q", 1) end)):add(after { q = "integer" }),
  -- A flow that doesn't declare what it needs may set it itself.
  flow.graph("g"):add(AOp):add(flow.new("inner"):add(flow.op("SetOp", function(ctx) ctx:set("q", 1) end))
    :add(flow.op("GetOp", { needs = { q = "integer" }, run = function() end }))),
  -- The condition decides whether it is needed.
  after({ q = "integer" }, { when = function(data) return data.q ~= nil end }),
} do
  local run = graph:run()
  check.equal(run.error, nil)
end
check.equal(after { q = "integer" }:run { q = 2 }.ok, true)
-- A step may write the file that another one needs.
local path = os.tmpname()
os.remove(path)
local WriteOp = flow.op("WriteOp", function() io.open(path, "w"):close() end)
local ReadOp = flow.op("ReadOp", { needs = { path = "file" }, run = function() end })
check.equal(flow.graph("g"):add(WriteOp):add(ReadOp, { after = WriteOp }):run { path = path }.ok, true)
os.remove(path)
