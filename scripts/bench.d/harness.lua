-- What scripts/bench measures with: both sides of a row in turn, A B A B; a figure is the median of
-- the rounds.
local harness = { rows = {}, missed = 0 }

local flowlua, compiled, rounds = arg[1], arg[2], tonumber(arg[3])
local here = arg[0]:match("^(.*)/")
harness.flowlua, harness.compiled, harness.rounds, harness.here = flowlua, compiled, rounds, here

-- Runs a program, which prints numbers, a line each, and returns them.
function harness.output_of(...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = "'" .. word:gsub("'", [['\'']]) .. "'" end
  local command = table.concat(words, " ")
  local pipe = assert(io.popen(command, "r"))
  local text = pipe:read("a")
  if not pipe:close() then error("failed: " .. command, 0) end
  local numbers = {}
  for line in text:gmatch("[^\n]+") do
    numbers[#numbers + 1] = assert(tonumber(line), "no number: " .. line)
  end
  return table.unpack(numbers)
end

function harness.median(values)
  table.sort(values)
  local middle = #values // 2
  if #values % 2 == 1 then return values[middle + 1] end
  return (values[middle] + values[middle + 1]) / 2
end

-- Medians of as many functions, called in turn.
function harness.in_turn(...)
  local sides, values = { ... }, {}
  for _ = 1, rounds do
    for i, side in ipairs(sides) do
      values[i] = values[i] or {}
      table.insert(values[i], (side()))
    end
  end
  for i in ipairs(sides) do values[i] = harness.median(values[i]) end
  return table.unpack(values)
end

-- A function that runs a script of this folder with a program.
function harness.with(program, script, ...)
  local words = { program, here .. "/" .. script, ... }
  return function() return harness.output_of(table.unpack(words)) end
end

-- The same with flowlua, and with lua5.4.
function harness.ours(script, ...) return harness.with(flowlua, script, ...) end
function harness.lua(script, ...) return harness.with("lua5.4", script, ...) end

-- A function that runs a peer that was compiled.
function harness.peer(name, ...)
  local words = { compiled .. "/" .. name, ... }
  return function() return harness.output_of(table.unpack(words)) end
end

-- A function that measures how long a command takes, in milliseconds.
function harness.wall(...)
  local words = { here .. "/wall", ... }
  return function() return harness.output_of(table.unpack(words)) end
end

-- A function that measures the CPU time that a command takes, in milliseconds.
function harness.cpu(...)
  local words = { here .. "/cpu", ... }
  return function() return harness.output_of(table.unpack(words)) end
end

-- A function that runs a script of this folder without a mechanism, which may be "none".
function harness.without(mechanism, script, ...)
  local words = { compiled .. "/host", mechanism, here .. "/" .. script, ... }
  return function() return harness.output_of(table.unpack(words)) end
end

-- How many instructions each of the `many` things takes for which a script of this folder is run
-- without a mechanism. The few things of another run are subtracted: what starts the script.
function harness.instructions(mechanism, script, many, ...)
  local words = { ... }
  local function count(n)
    words[#words + 1] = ("%d"):format(n)
    local counted = harness.output_of(
      here .. "/instructions", compiled .. "/host", mechanism, here .. "/" .. script,
      table.unpack(words))
    words[#words] = nil
    return assert(counted, "no instructions were counted")
  end
  local few = many // 10
  return (count(many) - count(few)) / (many - few)
end

local FORMAT = "%-41s %12s %12s %9s   %-22s %s"

local function figure(value, unit)
  if not value then return "-" end
  return (value < 10 and unit ~= "KiB" and "%.1f %s" or "%.0f %s"):format(value, unit)
end

function harness.head()
  print((FORMAT:format("measure", "flowlua", "peer", "ratio", "target", "verdict")))
end

-- Prints a row, and keeps it for the chart: `name`, `ours` and `peer` in a `unit`, their `ratio`
-- (ours to the peer's unless given), the `target` in words, and whether it is `met`.
function harness.row(row)
  harness.rows[#harness.rows + 1] = row
  if not row.ratio and row.ours and row.peer then row.ratio = row.ours / row.peer end
  if row.met == false then harness.missed = harness.missed + 1 end
  print((FORMAT:format(row.name, figure(row.ours, row.unit), figure(row.peer, row.unit),
    row.ratio and ("%.2f x"):format(row.ratio) or "-", row.target or "-",
    row.met == nil and "-" or row.met and "met" or "MISSED")))
  io.flush()
end

return harness
