-- Any depth that max_depth allows is read and written, without recursion.
local flow = require "flow"
local json = flow.json
local check = require "check"

for _, depth in ipairs { 0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 999, 1000 } do
  local arrays = ("["):rep(depth) .. "1" .. ("]"):rep(depth)
  check.equal(json.encode(json.decode(arrays)), arrays)
  local objects = ('{"a":'):rep(depth) .. "1" .. ("}"):rep(depth)
  check.equal(json.encode(json.decode(objects)), objects)
end
check.raises(function() json.decode(("["):rep(1001) .. ("]"):rep(1001)) end, "nested deeper", "column 1001")
local text = ("["):rep(10000) .. ("]"):rep(10000)
check.equal(json.encode(json.decode(text, { max_depth = 10000 }), { max_depth = 10000 }), text)
check.raises(function() json.decode("[[1]]", { max_depth = 1 }) end, "nested deeper", "column 2")
check.equal(json.decode("[1]", { max_depth = 1 })[1], 1)
-- Values wait on Lua's stack at each level: more than it has is an error with its place, not a crash.
local wide = ("[" .. ("1,"):rep(100)):rep(100000)
local problem = check.raises(function() json.decode(wide, { max_depth = 100000 }) end,
  "depth.lua", "nested deeper than Lua's stack has room for at line 1, column ")
check.equal(problem.code, "json")
check.equal(problem.line, 1)
-- So does a value in a function that has nearly filled the stack; the secret has it written by the API.
local deep = { flow.secret "x" }
for _ = 1, 90000 do deep = { deep } end
local options = { max_depth = 100000, secrets = true }
check.equal(tostring(json.encode(deep, options)), "<redacted>")
local function with_full_stack(call, ...) local text = call(deep, options) return text, (...) end
problem = check.raises(function() with_full_stack(json.encode, table.unpack({}, 1, 950000)) end,
  "depth.lua:" .. debug.getinfo(with_full_stack, "S").linedefined,
  "encode", "can't encode more levels than Lua's stack has room for at [1][1][1]")
check.equal(problem.kind, "usage")

-- A function that recurses until the stack is full gets an error that names its line.
local function recurse(levels)
  local ok, raised = pcall(json.encode, levels)
  if ok then ok, raised = pcall(json.decode, "[]") end
  if not ok then return raised end
  local deeper = recurse(levels + 1)
  return deeper
end
check.contains(recurse(1), "depth.lua:", "json.", ": stack overflow")
