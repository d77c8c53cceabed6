-- The option --graph draws each flow that the script started once, as it was at the start.
local host = require "host"
local check = require "check"
local fs = require "flow.fs"
local base = os.tmpname()

local function drawn(form, text)
  local name = base .. "." .. form
  local result = host.script([[
    local flow = require "flow"
    local AOp = flow.op("AOp", function() end)
    local one = flow.new("one"):add(AOp)
  ]] .. text, {}, { before = { "--graph", name } })
  local file = io.open(name, "rb")
  local graph = file and file:read("a")
  if file then file:close() end
  os.remove(name)
  return graph, result
end

local graph, result = drawn("dot", [[
  io.write(one:dot())
  one:run()
  one:run()
  one:add(AOp)
]])
check.equal(result.stderr, "")
check.equal(graph, result.stdout)
graph, result = drawn("mmd", "io.write(one:mermaid()) one:start() os.exit(3)")
check.equal(graph, result.stdout)
check.equal(result.status, 3)

-- Several stand side by side in one graph.
graph = drawn("dot", "flow.new('two'):add(one):add(AOp):run() one:run() AOp:run()")
local pipe = assert(io.popen("dot -Tplain <<'END' | grep -c ^node\n" .. graph .. "END\n"))
check.equal(pipe:read("a"), "10\n", "nodes")
assert(pipe:close())
check.contains(graph, 'digraph "flows"', 'label="one"', 'label="two"', 'label="AOp"')
graph = drawn("mmd", "flow.new('two'):add(one):run() one:run()")
check.contains(graph, 'subgraph g1["two"]', 'subgraph g3["one"]')

graph, result = drawn("svg", "one:run()")
check.equal(result.stderr, "")
check.contains(graph, "<svg", "AOp")
graph = drawn("dot", "")
check.contains(graph, "digraph")

-- A graph that can't be written any more is an error.
local gone = fs.temp_dir()
local failed = host.script("require('flow').fs.remove(arg[1])", { gone }, { before = { "--graph", gone .. "/x.dot" } })
check.equal(failed.status, 1)
check.contains(failed.stderr, "can't write the graph to '" .. gone .. "/x.dot': No such file")
failed = host.script("local flow = require 'flow' flow.new('x'):run()", {}, {
  before = { "--graph", base .. ".svg" }, environment = { PATH = "/no/such/folder" } })
check.equal(failed.status, 1)
check.contains(failed.stderr, "Graphviz", "apt install graphviz")
os.remove(base)
