-- Measures flowlua beside its peers, and prints a table. Run by scripts/bench, with lua5.4:
--
--   report.lua FLOWLUA FOLDER_OF_COMPILED_PEERS ROUNDS MACHINE [CHART.svg]
package.path = arg[0]:match("^(.*)/") .. "/?.lua;" .. package.path
local bench = require "harness"
local in_turn, median, output_of = bench.in_turn, bench.median, bench.output_of
local ours, lua, peer, wall, row = bench.ours, bench.lua, bench.peer, bench.wall, bench.row
local here, rounds = bench.here, bench.rounds

bench.head()

do
  local started, theirs, empty, loaded = {}, {}, {}, {}
  local spawn, flowlua = bench.compiled .. "/spawn", bench.flowlua
  for i = 1, rounds do
    started[i], theirs[i] = output_of(spawn, "200", flowlua, "lua5.4", here .. "/empty.lua")
    empty[i] = output_of(spawn, "200", flowlua, flowlua, here .. "/empty.lua")
    loaded[i] = output_of(spawn, "200", flowlua, flowlua, here .. "/require.lua")
  end
  local a, b = median(started), median(theirs)
  row { name = "start-up / lua5.4", ours = a, peer = b, unit = "us",
    target = "<= 1.40 x (goal 1.30)", met = a / b <= 1.4, chart = "start-up", against = "lua5.4" }
  a, b = median(loaded), median(empty)
  row { name = 'with require "flow" / without', ours = a, peer = b, unit = "us",
    target = "<= 300 us more", met = a - b <= 300 }
end

do
  local a, b = in_turn(ours "peak.lua", lua "peak.lua")
  row { name = "peak memory when idle / lua5.4", ours = a, peer = b, unit = "KiB",
    target = "<= 8192 KiB", met = a <= 8192 }
end

do
  -- The best of the rounds: what disturbs a benchmark only ever makes it slower.
  local product, count = 1, 0
  local function best(name)
    local a, b = math.huge, math.huge
    for _ = 1, rounds do
      a = math.min(a, (ours("plain.lua", name)()))
      b = math.min(b, (lua("plain.lua", name)()))
    end
    return a, b
  end
  for _, name in ipairs { "calls", "loops", "strings", "tables", "closures", "sort" } do
    local a, b = best(name)
    row { name = "plain Lua: " .. name, ours = a, peer = b, unit = "us" }
    product, count = product * a / b, count + 1
  end
  local mean = product ^ (1 / count)
  row { name = "plain Lua: their mean / lua5.4", unit = "us", ratio = mean, target = "<= 1.03 x",
    met = mean <= 1.03, chart = "plain Lua code, mean of six", against = "lua5.4" }
  local a, b = best "switches"
  -- Of 1,000,000 resumes and yields: in nanoseconds each.
  a, b = a / 2000, b / 2000
  row { name = "a coroutine switch / lua5.4", ours = a, peer = b, unit = "ns",
    target = "<= 25 ns more", met = a - b <= 25 }
end

do
  local a, loop, queue, group = in_turn(
    ours("ops.lua", "1000000"), lua("ops_peer.lua", "1000000"),
    peer("operation_queue", "100000"), peer("task_group", "100000"))
  row { name = "an op of 1,000,000 / coroutine", ours = a, peer = loop, unit = "ns",
    target = "<= 300 ns (goal 150)", met = a <= 300 }
  row { name = "an op / a TaskGroup's child", ours = a, peer = group, unit = "ns",
    chart = "an op, logged", against = "Swift TaskGroup" }
  row { name = "OperationQueue / an op", ours = a, peer = queue, unit = "ns", ratio = queue / a,
    target = ">= 15.00 x", met = queue / a >= 15, chart = "an op, logged",
    against = "OperationQueue", charted = a / queue }
end

do
  local a, b = in_turn(ours("group.lua", "100000"), lua("group_peer.lua", "100000"))
  row { name = "an item of 100,000 / by hand", ours = a, peer = b, unit = "ns",
    target = "<= 1500 ns", met = a <= 1500 }
end

do
  local a, b = in_turn(ours("steps.lua", "500000"), lua("steps_peer.lua", "500000"))
  row { name = "a step with get and set / by hand", ours = a, peer = b, unit = "ns",
    target = "<= 600 ns (goal 350)", met = a <= 600 }
end

do
  local a, b = in_turn(ours("machine.lua", "1000000"), lua("machine_peer.lua", "1000000"))
  row { name = "a machine's transition / by hand", ours = a, peer = b, unit = "ns",
    target = "<= 600 ns", met = a <= 600 }
end

do
  local settle, settle_peer, chain, chain_peer, await = in_turn(
    ours("tasks.lua", "settle", "100000"), lua("tasks_peer.lua", "settle", "100000"),
    ours("tasks.lua", "chain", "100000"), lua("tasks_peer.lua", "chain", "100000"),
    ours("tasks.lua", "await", "1000000"))
  row { name = "a settled continuation / closure", ours = settle, peer = settle_peer, unit = "ns",
    target = "<= 500 ns", met = settle <= 500 }
  row { name = "a chain of 100,000 / closures", ours = chain, peer = chain_peer, unit = "ms",
    target = "<= 60 ms", met = chain <= 60 }
  row { name = "await of a settled task", ours = await, unit = "ns", target = "<= 200 ns",
    met = await <= 200 }
end

do
  local over, memory, luv_over, luv_memory, cqueues_over = {}, {}, {}, {}, {}
  for i = 1, rounds do
    over[i], memory[i] = ours("sleepers.lua", "100000")()
    luv_over[i], luv_memory[i] = lua("sleepers_peer.lua", "luv", "100000")()
    cqueues_over[i] = lua("sleepers_peer.lua", "cqueues", "100000")()
  end
  local a, b, c = median(over), median(luv_over), median(cqueues_over)
  row { name = "100,000 sleeps, beyond them / luv", ours = a, peer = b, unit = "ms",
    target = "<= 150 ms (goal 80)", met = a <= 150, chart = "100,000 sleeps at once",
    against = "luv" }
  row { name = "100,000 sleeps, beyond them / cqueues", ours = a, peer = c, unit = "ms",
    chart = "100,000 sleeps at once", against = "cqueues" }
  a, b = median(memory), median(luv_memory)
  row { name = "their memory at its peak / luv", ours = a, peer = b, unit = "MiB",
    target = "<= 190 MiB (goal 150)", met = a <= 190 }
end

do
  local typed, list, a, callback, method, b = in_turn(
    peer("calls", "call", "2000000"), peer("calls", "list", "2000000"),
    peer("calls_peer", "call", "2000000"), peer("calls", "callback", "2000000"),
    peer("calls", "method", "2000000"), peer("calls_peer", "callback", "2000000"))
  row { name = "vm.call with types / lua_pcall in C", ours = typed, peer = a, unit = "ns",
    target = "<= 4.00 x", met = typed <= 4 * a }
  row { name = "vm.call with arrays / lua_pcall in C", ours = list, peer = a, unit = "ns",
    target = "<= 4.00 x", met = list <= 4 * a }
  row { name = "a Swift function, from Lua / one in C", ours = callback, peer = b, unit = "ns",
    target = "<= 2.50 x", met = callback <= 2.5 * b }
  row { name = "a bound method, from Lua / one in C", ours = method, peer = b, unit = "ns" }
end

do
  local get, small, encode, build, decode, read = in_turn(
    peer("data", "get", "1000000"), peer("data", "get_small", "1000000"),
    peer("data", "encode", "10000"), peer("data", "build", "10000"),
    peer("data", "decode", "10000"), peer("data", "read", "10000"))
  row { name = "get a list of 100,000 integers of Swift / of one", ours = get, peer = small,
    unit = "ns", target = "<= 1.20 x", met = get <= 1.2 * small }
  row { name = "encode a record of 10,000 / by hand", ours = encode, peer = build, unit = "ns" }
  row { name = "decode a record of 10,000 / by hand", ours = decode, peer = read, unit = "ns" }
end

do
  local a, b = in_turn(ours("build.lua", "1000000"), lua("build_peer.lua", "1000000"))
  row { name = "add and release / a table", ours = a, peer = b, unit = "ns" }
end

do
  -- The targets in MB/s: of decoding, and of encoding.
  for _, shape in ipairs {
    { "tweets", 300, 400 }, { "catalogue", 350, 220 }, { "map", 180, 180 },
  } do
    for i, way in ipairs { "decode", "encode" } do
      local least, a, b = shape[1 + i], {}, {}
      for round = 1, rounds do a[round], b[round] = ours("json.lua", shape[1], way)() end
      local mean, peers = median(a), median(b)
      row { name = ("JSON: %s %s / lua-cjson"):format(way, shape[1]), ours = mean, peer = peers,
        unit = "MB/s", target = (">= %d MB/s, ahead"):format(least),
        met = mean >= least and mean > peers }
    end
  end
  for _, rows in ipairs { "lists", "records" } do
    local function python() return output_of("python3", here .. "/csv_peer.py", rows) end
    local a, b = in_turn(ours("csv.lua", rows), python)
    row { name = ("CSV: 150,000 rows, %s / Python"):format(rows), ours = a, peer = b, unit = "ms",
      target = "<= 2.00 x", met = a <= 2 * b }
  end
end

do
  local count = "500"
  local captured, uncaptured, make, xargs = in_turn(
    wall(bench.flowlua, here .. "/programs.lua", count, "captured"),
    wall(bench.flowlua, here .. "/programs.lua", count, "uncaptured"),
    wall("make", "-j8", "-f", here .. "/programs.mk", "COUNT=" .. count),
    wall("sh", "-c", "seq " .. count .. " | xargs -P8 -I{} /bin/true"))
  row { name = "500 programs / make -j8", ours = uncaptured, peer = make, unit = "ms",
    target = "<= 1.15 x", met = uncaptured <= 1.15 * make, chart = "500 programs, 8 at a time",
    against = "make -j8" }
  row { name = "500 programs / xargs -P8", ours = uncaptured, peer = xargs, unit = "ms",
    target = "< 1.00 x", met = uncaptured < xargs, chart = "500 programs, 8 at a time",
    against = "xargs -P8" }
  row { name = "500 with their output / make -j8", ours = captured, peer = make, unit = "ms",
    target = "<= 1.15 x", met = captured <= 1.15 * make }
  row { name = "500 with their output / without", ours = captured, peer = uncaptured, unit = "ms",
    target = "<= 1.35 x (goal 1.10)", met = captured <= 1.35 * uncaptured }
end

do
  package.path = here .. "/../../Tests/scripts/lib/?.lua;" .. package.path
  local nginx <close> = require "servers".nginx(1 << 30)
  local count, url = "10000", nginx:url "/small"
  local all = url .. "?[1-" .. count .. "]"
  local curl = {
    "curl", "--no-progress-meter", "--parallel", "--parallel-max", "64", "-o", "/dev/null", all,
  }
  local a, c, b = in_turn(
    ours("http.lua", "get", url, count), peer("http_peer", url, count),
    bench.cpu(table.unpack(curl)))
  row { name = "CPU of a GET, 64 at once / libcurl in C", ours = a, peer = c, unit = "us",
    target = "<= 1.50 x", met = a <= 1.5 * c, chart = "a GET of 1 KB, CPU time",
    against = "libcurl in C" }
  row { name = "CPU of a GET, 64 at once / curl -Z", ours = a, peer = b * 1e3 / count, unit = "us",
    chart = "a GET of 1 KB, CPU time", against = "curl -Z" }
  a, b = in_turn(
    wall(bench.flowlua, here .. "/http.lua", "get", url, count), wall(table.unpack(curl)))
  row { name = "10,000 GETs, 64 at once / curl -Z", ours = a, peer = b, unit = "ms",
    target = "<= 1.00 x", met = a <= b, chart = "10,000 GETs of 1 KB", against = "curl -Z" }
  local big, out = nginx:url "/big", bench.compiled .. "/download"
  -- Into a new file: freeing the blocks of an old one isn't part of it.
  local function download(...)
    local run = wall(...)
    return function()
      os.remove(out)
      return run()
    end
  end
  a, b = in_turn(
    download(bench.flowlua, here .. "/http.lua", "save", big, out),
    download("curl", "-so", out, big))
  os.remove(out)
  row { name = "1 GiB into a file / curl", ours = a, peer = b, unit = "ms",
    target = "<= 1.11 x", met = a <= b / 0.9, chart = "a download of 1 GiB", against = "curl" }
end

do
  local large, photos = bench.compiled .. "/large", bench.compiled .. "/photos"
  -- Both read the same file from memory, which has no blocks on the disk.
  assert(os.execute(("truncate -s 1G '%s'"):format(large)))
  assert(os.execute(("test -e '%s/39/99.jpg' || lua5.4 '%s/photos_files.lua' '%s'"):format(
    photos, here, photos)))
  local hash, sum, report, python = in_turn(
    wall(bench.flowlua, here .. "/hash.lua", large), wall("sha256sum", large),
    wall(bench.flowlua, here .. "/../../examples/photos.lua", photos, photos .. ".json"),
    wall("python3", here .. "/photos_peer.py", photos, photos .. ".json"))
  row { name = "SHA-256 of 1 GiB / sha256sum", ours = hash, peer = sum, unit = "ms",
    target = "<= 1.11 x", met = hash <= 1.11 * sum }
  row { name = "SHA-256 of 4,000 files, JSON / Python", ours = report, peer = python, unit = "ms",
    target = "< 1.00 x", met = report < python, chart = "SHA-256 of 4,000 files, as JSON",
    against = "Python" }
end

do
  local function in_workers(...)
    local words = { bench.flowlua, "--workers", "3", here .. "/workers.lua", ... }
    return function() return output_of(table.unpack(words)) end
  end
  local workers, main = in_turn(
    in_workers("compute", "64", "worker"), in_workers("compute", "64", "main"))
  row { name = "an item of 20 ms, main thread / workers", ours = workers, peer = main, unit = "ms",
    ratio = main / workers, target = ">= 1.90 x", met = main / workers >= 1.9,
    chart = "64 ops of 20 ms of Lua, in workers", against = "the main thread",
    charted = workers / main }
  for _, measure in ipairs {
    { "trivial", 100000, "100,000 items in workers", 500, "ns", "<= 500 ns (goal 220)" },
    { "string", 1000, "10 KB to a worker and back", 6, "us", "<= 6 us" },
    { "table", 1000, "1,000 numbers there and back", 35, "us", "<= 35 us" },
  } do
    local kind, count, name, limit, unit, target = table.unpack(measure)
    local a, b = in_turn(
      in_workers(kind, tostring(count)), lua("workers_peer.lua", kind, tostring(count)))
    row { name = name .. " / luv's pool", ours = a, peer = b, unit = unit, target = target,
      met = a <= limit, chart = name, against = "luv's thread pool" }
  end
end

do
  local few, many = "200000", "1000000"
  local built_few, built, run_few, run = in_turn(
    ours("memory.lua", "build", few), ours("memory.lua", "build", many),
    ours("memory.lua", "run", few), ours("memory.lua", "run", many))
  local add = (built - built_few) / (many - few)
  local op = (run - built - (run_few - built_few)) / (many - few)
  row { name = "memory of an add", ours = add, unit = "B", target = "<= 100 B", met = add <= 100 }
  row { name = "memory of an op's log", ours = op, unit = "B", target = "<= 100 B",
    met = op <= 100 }
end

do
  local took, size, ready, page = {}, {}, {}, bench.compiled .. "/timeline.html"
  for i = 1, rounds do
    took[i], size[i] = output_of(
      bench.flowlua, "--virtual-clock", here .. "/timeline.lua", "100000", page)
    ready[i] = output_of(here .. "/ready", page)
  end
  local a, b, c = median(took), median(size), median(ready)
  row { name = "timeline of 100,000 items: CPU time", ours = a, unit = "ms", target = "<= 150 ms",
    met = a <= 150 }
  row { name = "its size", ours = b, unit = "MB", target = "<= 3.0 MB", met = b <= 3 }
  row { name = "until it is ready in Chromium", ours = c, unit = "ms", target = "<= 1500 ms",
    met = c <= 1500 }
end

do
  local folder = bench.compiled .. "/journal"
  -- A new store each time, in the folder of the peer's file.
  local function kept(...)
    local words = { bench.flowlua, "--keep", "--store", folder, here .. "/kept.lua", ... }
    return function()
      os.execute(("rm -rf '%s'*"):format(folder))
      return output_of(table.unpack(words))
    end
  end
  local function commits(count)
    local run = peer("kept_peer", folder .. ".sqlite", count)
    return function()
      os.execute(("rm -rf '%s'*"):format(folder))
      return run()
    end
  end
  local a, b = in_turn(kept("serial", "2000"), commits "2000")
  row { name = "a kept op / a commit of SQLite in C", ours = a, peer = b, unit = "us",
    target = "<= 1.50 x", met = a <= 1.5 * b, chart = "a kept op", against = "a commit of SQLite" }
  a, b = in_turn(kept("group", "12800"), ours("kept.lua", "group", "12800"))
  row { name = "12,800 items of 1 ms, 64 at once / unkept", ours = a, peer = b, unit = "ms",
    target = "<= 1.11 x", met = a <= b / 0.9 }
  local function finished(option)
    return function()
      return output_of("sh", "-c", '"$@" 2>/dev/null || true', "sh", bench.flowlua, option,
        "--store", folder, here .. "/kept.lua", "items", "100000")
    end
  end
  os.execute(("rm -rf '%s'*"):format(folder))
  finished "--keep"()
  local why = wall("sh", "-c", '"$@" >/dev/null 2>&1 || true', "sh", bench.flowlua, "--why",
    "--store", folder, here .. "/kept.lua", "items", "100000")
  a, b = in_turn(finished "--resume", why)
  row { name = "resume of 100,000 finished items", ours = a, unit = "ms", target = "<= 500 ms",
    met = a <= 500 }
  row { name = "--why of them", ours = b, unit = "ms", target = "<= 1000 ms", met = b <= 1000 }
  os.execute(("rm -rf '%s'*"):format(folder))
end

-- What the bold mechanisms gain: flowlua with and without each. Instructions are counted once,
-- because they are the same each time. The first one, lua_resume of this program in place of the
-- library's, has nothing in its stead: the row of a coroutine switch says what it costs.
for _, measure in ipairs {
  { "tables", "read tables: a number sent / API", "list.lua", 100000 },
  { "tables", "read tables: an object as JSON / API", "encode.lua", 20000 },
  { "frames", "read frames: a link of a chain / API", "tasks.lua", 20000, "chain" },
  { "freed", "freed objects: a link / finalizers", "tasks.lua", 20000, "chain" },
  { "pool", "pool of blocks: a sleep / malloc", "sleepers.lua", 20000 },
} do
  local mechanism, name = table.unpack(measure, 1, 2)
  local a = bench.instructions("none", table.unpack(measure, 3))
  local b = bench.instructions(mechanism, table.unpack(measure, 3))
  -- Each number is sent ten times.
  if mechanism == "tables" then a, b = a / 10, b / 10 end
  row { name = name, ours = a, peer = b, unit = "instr.", target = "< 0.97 x", met = a < 0.97 * b }
end

do
  local a, b = in_turn(
    bench.without("none", "sleepers.lua", "100000"),
    bench.without("pool", "sleepers.lua", "100000"))
  row { name = "pool of blocks: 100,000 sleeps / malloc", ours = a, peer = b, unit = "ms" }
end

print()
print(bench.missed == 0 and "all targets met" or bench.missed .. " missed")
if arg[5] then
  require "chart"(bench.rows, arg[4], arg[5])
  print("the chart is in " .. arg[5])
end
