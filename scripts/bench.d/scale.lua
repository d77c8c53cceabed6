-- What a unit costs where there are many of them: a table, in which no unit may cost more than 1.5
-- times as much as among the first 1,000. Run by scripts/bench --scale, with lua5.4:
--
--   scale.lua FLOWLUA [KIND]
--
-- A unit's cost is the difference that it makes to have more of them. It is judged by counted
-- instructions: they show work that grows with the number, and nothing else, on any machine. Times
-- also grow where data no longer fits into the processor's caches, and swing; so does memory, which
-- a garbage collector frees late. Both are printed. The most units are as many as can be counted in
-- about 20 seconds, as counting takes 20 times as long as executing.
local flowlua, only = arg[1], arg[2]
local here = arg[0]:match("^(.*)/")
local counting = require "counting"

local LIMIT = 1.5
local missed = 0

local measures = {
  { "op of a chain", "op", 1000000 },
  { "item of a group", "item", 1000000 },
  { "failed item", "failed_item", 10000 },
  { "member of add_parallel", "member", 100000 },
  { "group in a group", "nested_group", 10000 },
  { "sleeper", "sleeper", 100000 },
  { "waiting task, cancelled", "cancelled_task", 10000 },
  { "continuation of a task", "continuation", 100000 },
  { "key set and read", "key", 100000 },
  { "set in the summary", "logged_set", 100000 },
  { "line with as many secrets", "secret", 10000 },
  { "element of a needed list", "needed_element", 1000000 },
}

-- The CPU time of a unit in nanoseconds, and the peak of memory in bytes.
local function measured(kind, n)
  local pipe = assert(io.popen(("'%s' '%s/units.lua' %s %d"):format(flowlua, here, kind, n), "r"))
  local _, time, peak = pipe:read("n", "n", "n")
  assert(pipe:close() and peak, "failed: " .. kind)
  return time, peak
end

local FORMAT = "%-31s %9s %10s %9s %9s %9s  %s"
print(FORMAT:format("unit", "of", "instr.", "ns CPU", "bytes", "growth", "verdict"))
for i = #measures, 1, -1 do
  if only and measures[i][2] ~= only then table.remove(measures, i) end
end
for _, measure in ipairs(measures) do
  local name, kind, most = table.unpack(measure)
  local fewer, counted, first = 100, counting(flowlua, here .. "/units.lua", kind, 100)(), nil
  local _, peak = measured(kind, 100)
  local n = 1000
  while n <= most do
    local count = counting(flowlua, here .. "/units.lua", kind, n)
    local time, high = measured(kind, n)
    local now = count()
    local unit = (now - counted) / (n - fewer)
    first = first or unit
    local grown = unit > LIMIT * first
    print(FORMAT:format(name, n, ("%.0f"):format(unit), ("%.0f"):format(time),
      ("%.0f"):format((high - peak) / (n - fewer)), ("%.2f x"):format(unit / first),
      grown and "MISSED" or "met"))
    io.stdout:flush()
    if grown then
      -- More of them might never end.
      missed = missed + 1
      break
    end
    counted, peak, fewer, n = now, high, n, n * 10
  end
end
print()
print(missed == 0 and "no unit grows" or missed .. " missed")
os.exit(missed == 0)
