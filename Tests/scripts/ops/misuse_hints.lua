-- The error of a mistake names what was meant.
local check, flow = require "check", require "flow"

check.usage(function() local f = flow.new "f" f.add(flow.op("AOp", print)) end,
  "add", "bad self", "flow expected, got op): write flow:add")
check.usage(function() flow.op("AOp", { retires = 3, run = print }) end, "op", "#2", "did you mean 'retry'?")
check.usage(function() flow.exec "ls -l" end,
  "exec", "#1", 'table expected, got string; its arguments are strings of their own: { "ls", "-l" }')
check.usage(function() flow.exec "ls | wc" end, "exec", "#1", 'a command line is for a shell: { "sh", "-c", … }')
check.usage(function() flow.ops.ExecOp "ls" end, "ExecOp", "#1", 'table expected, got string; its arguments')

-- A name of no op at all is nil, as it is for any table.
local ok, problem = pcall(function() return flow.ops.PrnitOp end)
check.equal(ok, false)
check.contains(tostring(problem), "flow.ops.PrnitOp isn't there (did you mean 'PrintOp'?)")
check.equal(flow.ops.FrobnicateOp, nil)

-- Each of flowlua's ops has a description.
for name, op in pairs(flow.ops) do
  local ok, doc = pcall(function() return op.doc end)
  assert(ok and type(doc) == "string" and doc:find "%.$", name)
end
