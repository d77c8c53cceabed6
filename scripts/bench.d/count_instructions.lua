-- Counts instructions of flowlua, and prints a table. Run by scripts/bench --instructions, with
-- lua5.4:
--
--   count_instructions.lua FLOWLUA [BASELINE]
--
-- A unit's number is a difference of two counts: the same units are executed by few runs of the
-- same blueprint, and by many. So neither the start of the program nor what builds the flow is in
-- it. It says nothing of caches and of the kernel, but is the same each time, to 1 %, on any
-- machine however busy it is. Only those of errors swing by 10 %: a traceback looks for names in
-- tables, whose order differs from process to process. BASELINE is a file with a table of before,
-- to compare with.
local flowlua, baseline = arg[1], arg[2]
local here = arg[0]:match("^(.*)/") .. "/"
local counting = require "counting"

local FEW, MANY = 2, 7
local measures = {
  { "an op of a chain", "op", 2000 },
  { "a step with get and set", "step", 2000 },
  { "a step with strings", "string_step", 2000 },
  { "an item of a group", "item", 2000 },
  { "an item with strings", "string_item", 2000 },
  { "a failed item", "failed_item", 200 },
  { "an item that fails by ctx:fail", "refused_item", 200 },
  { "a retried attempt", "retried_attempt", 200 },
  { "a cancelled task", "cancelled_task", 200 },
  { "a member of add_parallel", "member", 200 },
  { "an op of a graph", "graph_op", 2000 },
  { "an item of an iterator", "iterated_item", 2000 },
  { "a group in a group", "nested_group", 100 },
  { "a sleeper", "sleeper", 2000 },
  { "a transition of a machine", "transition", 2000 },
  { "a continuation of a task", "continuation", 2000 },
  { "an await of a settled task", "await", 5000 },
  { "an added op", "add", 2000 },
  { "a key set and read", "key", 2000 },
  { "a set in the summary", "logged_set", 2000 },
  { "a logged line and a secret", "secret", 100 },
  { "an element of a needed list", "needed_element", 20000 },
  { "a number for a worker", "number", 20000 },
  { "an object as JSON", "object", 5000 },
}

local before = {}
if baseline then
  for line in io.lines(baseline) do
    local name, number = line:match "^(.-)%s%s+(%d+)"
    if name then before[name] = tonumber(number) end
  end
end

local function show(name, number)
  local was = before[name]
  print(("%-32s %12.0f"):format(name, number)
    .. (was and (" %12.0f %7.3f x"):format(was, number / was) or ""))
  io.flush()
end

print(("%-32s %12s"):format("instructions of", "now")
  .. (baseline and (" %12s %9s"):format("before", "now to it") or ""))
local empty = counting(flowlua, here .. "empty.lua")
local loaded = counting(flowlua, here .. "require.lua")
local start = empty()
show("the start", start)
show('require "flow"', loaded() - start)
for _, measure in ipairs(measures) do
  local name, kind, units = table.unpack(measure)
  local few = counting(flowlua, here .. "units.lua", kind, units, FEW)
  local many = counting(flowlua, here .. "units.lua", kind, units, MANY)
  show(name, (many() - few()) / units / (MANY - FEW))
end
