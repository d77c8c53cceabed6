-- scripts/bench measures with this: both sides of a row in turn, A B A B; a figure is the median of
-- the rounds. A figure of time has two numbers, the time that passed (`wall`) and the CPU time of
-- all threads (`cpu`), and a row says which of them judges: the CPU time where one thread works,
-- because it swings less; the other where several threads, processes or the disk work.
local counting = require "counting"
local harness = { rows = {}, missed = 0 }

local flowlua, compiled, rounds = arg[1], arg[2], tonumber(arg[3])
local here = arg[0]:match("^(.*)/")
harness.flowlua, harness.compiled, harness.rounds, harness.here = flowlua, compiled, rounds, here

-- Runs a program, which prints numbers, and returns them.
function harness.output_of(...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = "'" .. tostring(word):gsub("'", [['\'']]) .. "'" end
  local command = table.concat(words, " ")
  local pipe = assert(io.popen(command, "r"))
  local text = pipe:read("a")
  if not pipe:close() then error("failed: " .. command, 0) end
  local numbers = {}
  for word in text:gmatch("%S+") do
    numbers[#numbers + 1] = assert(tonumber(word), "no number: " .. word)
  end
  return numbers
end

local function median(values)
  table.sort(values)
  local middle = #values // 2
  if #values % 2 == 1 then return values[middle + 1] end
  return (values[middle] + values[middle + 1]) / 2
end

local function least(values) return math.min(table.unpack(values)) end

-- The numbers that functions return in turn, a list for each: the choice among the rounds.
local function chosen(choose, sides)
  local lists = {}
  for round = 1, rounds do
    for i, side in ipairs(sides) do
      lists[i] = lists[i] or {}
      for k, number in ipairs(side()) do
        lists[i][k] = lists[i][k] or {}
        lists[i][k][round] = number
      end
    end
  end
  for _, list in ipairs(lists) do
    for k, values in ipairs(list) do list[k] = choose(values) end
  end
  return table.unpack(lists)
end

-- Medians, or the least numbers: what disturbs a benchmark only ever makes it slower.
function harness.in_turn(...) return chosen(median, { ... }) end
function harness.best_of(...) return chosen(least, { ... }) end

-- The figure whose two numbers begin at a place of a list, times a factor.
function harness.time(list, place, factor)
  place, factor = place or 1, factor or 1
  return { wall = list[place] * factor, cpu = list[place + 1] * factor }
end

-- Writes to memory and frees it: so many bytes, but at most half of what is available. A virtual
-- machine gets memory from its host when it is written to for the first time, and gives it back
-- later; that takes longer than to write a file there.
function harness.touch_memory(bytes)
  local available
  for line in io.lines "/proc/meminfo" do
    available = available or tonumber(line:match "^MemAvailable:%s*(%d+)")
  end
  local half = assert(available, "no MemAvailable") * 1024 // 2
  do
    local strings = {}
    for i = 1, math.min(bytes, half) >> 20 do strings[i] = ("x"):rep(1 << 20) end
    assert(#strings > 0, "no memory is available")
  end
  collectgarbage()
end

-- A function that runs a program.
function harness.running(...)
  local words = { ... }
  return function() return harness.output_of(table.unpack(words)) end
end

-- Functions that run a script of this folder with flowlua, and with lua5.4; a peer that was
-- compiled; and any command, to measure the milliseconds that it takes.
function harness.ours(script, ...) return harness.running(flowlua, here .. "/" .. script, ...) end
function harness.lua(script, ...) return harness.running("lua5.4", here .. "/" .. script, ...) end
function harness.peer(name, ...) return harness.running(compiled .. "/" .. name, ...) end
function harness.took(...) return harness.running(here .. "/took", ...) end

-- A function that runs a script of this folder without a mechanism, which may be "none".
function harness.without(mechanism, script, ...)
  return harness.running(compiled .. "/host", mechanism, here .. "/" .. script, ...)
end

-- How many instructions a unit of a kind takes without a mechanism: those of few of them, which
-- start the script, are subtracted.
function harness.instructions(mechanism, kind, many)
  local few = many // 10
  local function count(n)
    return counting(compiled .. "/host", mechanism, here .. "/units.lua", kind, n)
  end
  local less, more = count(few), count(many)
  return (more() - less()) / (many - few)
end

local FORMAT = "%-52s %9s %9s %9s %9s %-6s %9s  %-24s %s"

local function figure(value)
  if not value then return "-" end
  return (value < 10 and "%.1f" or "%.0f"):format(value)
end

function harness.head()
  print(FORMAT:format("", "flowlua", "flowlua", "peer", "peer", "", "", "", ""))
  print(FORMAT:format(
    "measure", "wall", "CPU", "wall", "CPU", "unit", "ratio", "target", "verdict"))
end

-- Whether a row meets its target, and the target in words.
local function judged(row, ours, theirs)
  local clock = row.by and (row.by == "cpu" and "CPU " or "wall ") or ""
  if row.at_most then
    return ours <= row.at_most, ("%s<= %g %s"):format(clock, row.at_most, row.unit)
  elseif row.at_least then
    return ours >= row.at_least and ours > theirs,
      ("%s>= %g %s, ahead"):format(clock, row.at_least, row.unit)
  elseif row.times then
    return ours <= row.times * theirs, ("%s<= %.2f x"):format(clock, row.times)
  elseif row.faster then
    return theirs >= row.faster * ours, ("%s>= %.2f x"):format(clock, row.faster)
  elseif row.more then
    return ours - theirs <= row.more, ("%s<= %g %s more"):format(clock, row.more, row.unit)
  end
end

-- Prints a row, and keeps it for the chart. Its fields:
--
--   name           what is measured / with what it is compared
--   ours, peer     numbers in a `unit`, or figures of time
--   by             "cpu" or "wall", the time that judges
--   at_most, at_least, times, faster, more
--                  the target: the most; the least, which is more than the peer's; how many times
--                  the peer's; how many times as fast as the peer; how much more than the peer's
--   ratio          ours to the peer's unless given; the peer's to ours with `faster`
--   chart, against the words of the chart
function harness.row(row)
  harness.rows[#harness.rows + 1] = row
  local function judging(side) return type(side) == "table" and side[row.by] or side end
  local ours, theirs = judging(row.ours), judging(row.peer)
  if ours and theirs then
    row.charted = ours / theirs
    row.ratio = row.faster and theirs / ours or row.charted
  end
  local met, target = judged(row, ours or row.ratio, theirs or 1)
  if met == false then harness.missed = harness.missed + 1 end
  local cells = {}
  for _, side in ipairs { row.ours or false, row.peer or false } do
    local both = type(side) == "table" and side or { wall = side }
    cells[#cells + 1] = figure(both.wall)
    cells[#cells + 1] = figure(both.cpu)
  end
  print((FORMAT:format(row.name, cells[1], cells[2], cells[3], cells[4], row.unit,
    row.ratio and ("%.2f x"):format(row.ratio) or "-", target or "-",
    met == nil and "-" or met and "met" or "MISSED")))
  io.flush()
end

return harness
