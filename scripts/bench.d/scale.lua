-- The cost of a unit among many: a table, in which no unit may cost more than 1.5
-- times as many instructions as among the first 1,000, nor 2.5 times as much time. Run by
-- scripts/bench --scale, with lua5.4:
--
--   scale.lua FLOWLUA [KIND]
--
-- A unit's cost is the difference that it makes to have more of them. Counted instructions show
-- work that grows with the number, and nothing else, on any machine. They don't show a structure
-- that misses the processor's caches at each step, so the time of the processor counts as well, the
-- least of three rounds; data that no longer fits into the caches costs up to twice the time.
-- Memory, which a garbage collector frees late, is only printed. The most units are as many as can
-- be counted in about 20 seconds, as counting takes 20 times as long as executing.
local flowlua, only = arg[1], arg[2]
local here = arg[0]:match("^(.*)/")
local counting = require "counting"

local LIMIT, TIME_LIMIT, ROUNDS = 1.5, 2.5, 3
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
  { "flow in a case, all views", "shown_case", 10000 },
  { "step of a graph, checked", "checked_step", 10000 },
  { "function in a function, kept", "enclosed_function", 100000 },
}

-- The CPU time of a unit in nanoseconds, and the peak of memory in bytes: the least of some rounds.
local function measured(kind, n)
  local times, peaks = {}, {}
  for round = 1, ROUNDS do
    local pipe = assert(io.popen(("'%s' '%s/units.lua' %s %d"):format(flowlua, here, kind, n)))
    local _, time, peak = pipe:read("n", "n", "n")
    assert(pipe:close() and peak, "failed: " .. kind)
    times[round], peaks[round] = time, peak
  end
  return math.min(table.unpack(times)), math.min(table.unpack(peaks))
end

local FORMAT = "%-31s %9s %10s %9s %9s %9s %9s  %s"
print(FORMAT:format("unit", "of", "instr.", "growth", "ns CPU", "growth", "bytes", "verdict"))
for i = #measures, 1, -1 do
  if only and measures[i][2] ~= only then table.remove(measures, i) end
end
for _, measure in ipairs(measures) do
  local name, kind, most = table.unpack(measure)
  local fewer, counted = 100, counting(flowlua, here .. "/units.lua", kind, 100)()
  local first, quickest
  local _, peak = measured(kind, 100)
  local n = 1000
  while n <= most do
    local count = counting(flowlua, here .. "/units.lua", kind, n)
    local time, high = measured(kind, n)
    local now = count()
    local unit = (now - counted) / (n - fewer)
    first, quickest = first or unit, quickest or time
    local grown = unit > LIMIT * first or time > TIME_LIMIT * quickest
    print(FORMAT:format(name, n, ("%.0f"):format(unit), ("%.2f x"):format(unit / first),
      ("%.0f"):format(time), ("%.2f x"):format(time / quickest),
      ("%.0f"):format((high - peak) / (n - fewer)),
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
