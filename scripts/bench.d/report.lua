-- Measures flowlua beside its peers, and prints a table. Run by scripts/bench, with lua5.4:
--
--   report.lua FLOWLUA FOLDER_OF_COMPILED_PEERS ROUNDS
--
-- Both sides of a row are measured in turn, A B A B; a figure is the median of the rounds.
local flowlua, compiled, rounds = arg[1], arg[2], tonumber(arg[3])
local here = arg[0]:match("^(.*)/")

local function output_of(...)
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

local function median(values)
  table.sort(values)
  local middle = #values // 2
  if #values % 2 == 1 then return values[middle + 1] end
  return (values[middle] + values[middle + 1]) / 2
end

-- Medians of as many functions, called in turn.
local function in_turn(...)
  local sides, values = { ... }, {}
  for _ = 1, rounds do
    for i, side in ipairs(sides) do
      values[i] = values[i] or {}
      table.insert(values[i], (side()))
    end
  end
  for i in ipairs(sides) do values[i] = median(values[i]) end
  return table.unpack(values)
end

local function with(program, script, ...)
  local words = { program, here .. "/" .. script, ... }
  return function() return output_of(table.unpack(words)) end
end

local function wall(...)
  local words = { here .. "/wall", ... }
  return function() return output_of(table.unpack(words)) end
end

local FORMAT = "%-39s %12s %12s %9s   %-22s %s"
local missed = 0

local function row(name, ours, peer, unit, ratio, target, met)
  local function figure(value)
    return value and ("%.0f %s"):format(value, unit) or "-"
  end
  if met == false then missed = missed + 1 end
  print((FORMAT:format(name, figure(ours), figure(peer), ratio and ("%.2f x"):format(ratio) or "-",
    target or "-", met == nil and "-" or met and "met" or "MISSED")))
end

print((FORMAT:format("measure", "flowlua", "peer", "ratio", "target", "verdict")))

do
  local ours, theirs, empty, loaded = {}, {}, {}, {}
  for i = 1, rounds do
    ours[i], theirs[i] = output_of(
      compiled .. "/spawn", "200", flowlua, "lua5.4", here .. "/empty.lua")
    empty[i] = output_of(compiled .. "/spawn", "200", flowlua, flowlua, here .. "/empty.lua")
    loaded[i] = output_of(compiled .. "/spawn", "200", flowlua, flowlua, here .. "/require.lua")
  end
  local a, b = median(ours), median(theirs)
  row("start-up / lua5.4", a, b, "us", a / b, "<= 1.40 x (goal 1.30)", a / b <= 1.4)
  a, b = median(loaded), median(empty)
  row('with require "flow" / without', a, b, "us", a / b, "<= 300 us more", a - b <= 300)
end

do
  local ours, theirs = in_turn(with(flowlua, "peak.lua"), with("lua5.4", "peak.lua"))
  row("peak memory when idle / lua5.4", ours, theirs, "KiB", ours / theirs, "<= 8192 KiB",
    ours <= 8192)
end

do
  -- The best of the rounds: what disturbs a benchmark only ever makes it slower.
  local product, count = 1, 0
  local function best(name)
    local ours, theirs = math.huge, math.huge
    for _ = 1, rounds do
      ours = math.min(ours, (with(flowlua, "plain.lua", name)()))
      theirs = math.min(theirs, (with("lua5.4", "plain.lua", name)()))
    end
    return ours, theirs
  end
  for _, name in ipairs { "calls", "loops", "strings", "tables", "closures", "sort" } do
    local ours, theirs = best(name)
    row("plain Lua: " .. name, ours, theirs, "us", ours / theirs)
    product, count = product * ours / theirs, count + 1
  end
  local mean = product ^ (1 / count)
  row("plain Lua: their mean / lua5.4", nil, nil, "us", mean, "<= 1.03 x", mean <= 1.03)
  local ours, theirs = best "switches"
  -- Of 1,000,000 resumes and yields: in nanoseconds each.
  ours, theirs = ours / 2000, theirs / 2000
  row("a coroutine switch / lua5.4", ours, theirs, "ns", ours / theirs, "<= 25 ns more",
    ours - theirs <= 25)
end

do
  local ours, coroutine_loop, queue = in_turn(
    with(flowlua, "ops.lua", "1000000"), with("lua5.4", "ops_peer.lua", "1000000"),
    function() return output_of(compiled .. "/operation_queue", "100000") end)
  row("an op of 1,000,000 / coroutine", ours, coroutine_loop, "ns", ours / coroutine_loop,
    "<= 300 ns (goal 150)", ours <= 300)
  row("OperationQueue / an op", ours, queue, "ns", queue / ours, ">= 15.00 x", queue / ours >= 15)
end

do
  local ours, peer = in_turn(
    with(flowlua, "group.lua", "100000"), with("lua5.4", "group_peer.lua", "100000"))
  row("an item of 100,000 / by hand", ours, peer, "ns", ours / peer, "<= 1500 ns", ours <= 1500)
end

do
  local function in_workers(...)
    local words = { flowlua, "--workers", "3", here .. "/workers.lua", ... }
    return function() return output_of(table.unpack(words)) end
  end
  local worker, main = in_turn(
    in_workers("compute", "64", "worker"), in_workers("compute", "64", "main"))
  local cores = tonumber(io.popen("nproc"):read("l"))
  local wanted = 0.95 * math.min(cores, 3)
  row("64 items of 20 ms / on one thread", worker, main, "ms", main / worker,
    (">= %.2f x"):format(wanted), main / worker >= wanted)
  local trivial, string, numbers = in_turn(
    in_workers("trivial", "100000"), in_workers("string", "1000"), in_workers("table", "1000"))
  row("an item of 100,000 in 3 workers", trivial, nil, "ns", nil, "<= 500 ns (goal 220)",
    trivial <= 500)
  row("10 KB to a worker and back", string, nil, "us", nil, "<= 6 us", string <= 6)
  row("1,000 numbers there and back", numbers, nil, "us", nil, "<= 35 us", numbers <= 35)
end

do
  local ours, peer = in_turn(
    with(flowlua, "steps.lua", "500000"), with("lua5.4", "steps_peer.lua", "500000"))
  row("a step with get and set / by hand", ours, peer, "ns", ours / peer,
    "<= 600 ns (goal 350)", ours <= 600)
end

do
  local ours, peer = in_turn(
    with(flowlua, "machine.lua", "1000000"), with("lua5.4", "machine_peer.lua", "1000000"))
  row("a machine's transition / by hand", ours, peer, "ns", ours / peer, "<= 600 ns",
    ours <= 600)
end

do
  local settle, settle_peer, chain, chain_peer, await = in_turn(
    with(flowlua, "tasks.lua", "settle", "100000"),
    with("lua5.4", "tasks_peer.lua", "settle", "100000"),
    with(flowlua, "tasks.lua", "chain", "100000"),
    with("lua5.4", "tasks_peer.lua", "chain", "100000"),
    with(flowlua, "tasks.lua", "await", "1000000"))
  row("a settled continuation / closure", settle, settle_peer, "ns", settle / settle_peer,
    "<= 500 ns", settle <= 500)
  row("a chain of 100,000 / closures", chain, chain_peer, "ms", chain / chain_peer, "<= 60 ms",
    chain <= 60)
  row("await of a settled task", await, nil, "ns", nil, "<= 200 ns", await <= 200)
end

do
  local over, memory, peer_over, peer_memory = {}, {}, {}, {}
  for i = 1, rounds do
    over[i], memory[i] = with(flowlua, "sleepers.lua", "100000")()
    peer_over[i], peer_memory[i] = with("lua5.4", "sleepers_peer.lua", "100000")()
  end
  local a, b = median(over), median(peer_over)
  row("100,000 sleeps, beyond them / luv", a, b, "ms", a / b, "<= 150 ms (goal 80)", a <= 150)
  a, b = median(memory), median(peer_memory)
  row("their memory at its peak / luv", a, b, "MiB", a / b, "<= 190 MiB (goal 150)", a <= 190)
end

do
  local ours, peer = in_turn(
    with(flowlua, "build.lua", "1000000"), with("lua5.4", "build_peer.lua", "1000000"))
  row("add and release / a table", ours, peer, "ns", ours / peer)
end

do
  local count = "500"
  local captured, uncaptured, make, xargs = in_turn(
    wall(flowlua, here .. "/programs.lua", count, "captured"),
    wall(flowlua, here .. "/programs.lua", count, "uncaptured"),
    wall("make", "-j8", "-f", here .. "/programs.mk", "COUNT=" .. count),
    wall("sh", "-c", "seq " .. count .. " | xargs -P8 -I{} /bin/true"))
  row("500 programs / make -j8", uncaptured, make, "ms", uncaptured / make, "<= 1.15 x",
    uncaptured <= 1.15 * make)
  row("500 programs / xargs -P8", uncaptured, xargs, "ms", uncaptured / xargs, "< 1.00 x",
    uncaptured < xargs)
  row("500 with their output / make -j8", captured, make, "ms", captured / make, "<= 1.15 x",
    captured <= 1.15 * make)
  row("500 with their output / without", captured, uncaptured, "ms", captured / uncaptured,
    "<= 1.35 x (goal 1.10)", captured <= 1.35 * uncaptured)
end

do
  local few, many = "200000", "1000000"
  local built_few, built, run_few, run = in_turn(
    with(flowlua, "memory.lua", "build", few), with(flowlua, "memory.lua", "build", many),
    with(flowlua, "memory.lua", "run", few), with(flowlua, "memory.lua", "run", many))
  local add = (built - built_few) / (many - few)
  local op = (run - built - (run_few - built_few)) / (many - few)
  row("memory of an add", add, nil, "B", nil, "<= 100 B", add <= 100)
  row("memory of an op's log", op, nil, "B", nil, "<= 100 B", op <= 100)
end

print()
print(missed == 0 and "all targets met" or missed .. " missed")
