-- Measures flowlua beside its peers, and prints a table. Run by scripts/bench, with lua5.4:
--
--   report.lua FLOWLUA FOLDER_OF_COMPILED_PEERS ROUNDS MACHINE PART|all [CHART.svg]
local bench = require "harness"
local in_turn, time, row = bench.in_turn, bench.time, bench.row
local ours, lua, peer, took, running = bench.ours, bench.lua, bench.peer, bench.took, bench.running
local here, flowlua, compiled = bench.here, bench.flowlua, bench.compiled
local only, chart = arg[5], arg[6]

-- The parts in their order, a name and a function each.
local parts = {}
local function part(name, measure) parts[#parts + 1] = { name = name, measure = measure } end

part("start", function()
  local function beside(a, b, script)
    return peer("spawn", "200", a, b, here .. "/" .. script)
  end
  local started, empty, loaded, confined = in_turn(
    beside(flowlua, "lua5.4", "empty.lua"), beside(flowlua, flowlua, "empty.lua"),
    beside(flowlua, flowlua, "require.lua"),
    beside(flowlua .. " --sandbox", flowlua, "empty.lua"))
  row { name = "start-up / lua5.4", ours = time(started), peer = time(started, 3), unit = "us",
    by = "cpu", times = 1.3, chart = "start-up", against = "lua5.4" }
  row { name = 'with require "flow" / without', ours = time(loaded), peer = time(empty),
    unit = "us", by = "cpu", more = 300 }
  row { name = "start-up with --sandbox / without", ours = time(confined), peer = time(confined, 3),
    unit = "us", by = "cpu", more = 1000 }
  local a, b = in_turn(ours "peak.lua", lua "peak.lua")
  row { name = "peak memory when idle / lua5.4", ours = a[1], peer = b[1], unit = "KiB",
    at_most = 8192 }
end)

part("plain", function()
  local product, count = 1, 0
  local function best(name)
    return bench.best_of(ours("plain.lua", name), lua("plain.lua", name))
  end
  for _, name in ipairs { "calls", "loops", "strings", "tables", "closures", "sort" } do
    local a, b = best(name)
    row { name = "plain Lua: " .. name .. " / lua5.4", ours = time(a), peer = time(b), unit = "us",
      by = "cpu", times = name == "closures" and 1.05 or name == "sort" and 1.03 or nil }
    product, count = product * a[2] / b[2], count + 1
  end
  row { name = "plain Lua: their mean / lua5.4", unit = "x", ratio = product ^ (1 / count),
    by = "cpu", times = 1.03, chart = "plain Lua code, mean of six", against = "lua5.4" }
  local a, b = best "switches"
  -- Of 1,000,000 resumes and yields: in nanoseconds each.
  row { name = "a coroutine switch / lua5.4", ours = time(a, 1, 1 / 2000),
    peer = time(b, 1, 1 / 2000), unit = "ns", by = "cpu", times = 1.05 }
end)

part("ops", function()
  local op, loop, queue, child = in_turn(
    ours("units.lua", "op", "1000000"), lua("units_peer.lua", "op", "1000000"),
    peer("operation_queue", "100000"), peer("task_group", "100000"))
  row { name = "an op of 1,000,000 / a coroutine", ours = time(op), peer = time(loop), unit = "ns",
    by = "cpu", at_most = 300 }
  row { name = "an op / a TaskGroup's child", ours = time(op), peer = time(child), unit = "ns",
    by = "wall", chart = "an op, logged", against = "Swift TaskGroup" }
  row { name = "an op / of an OperationQueue", ours = time(op), peer = time(queue), unit = "ns",
    by = "wall", faster = 15, chart = "an op, logged", against = "OperationQueue" }
  for _, measure in ipairs {
    { "add", "1000000", "adding and releasing an op / a table" },
    { "item", "100000", "an item of 100,000 / by hand", 1500 },
    { "step", "500000", "a step with get and set / by hand", 600 },
    { "transition", "1000000", "a machine's transition / by hand", 600 },
    { "settle", "100000", "a settled continuation / a closure", 500 },
    { "continuation", "100000", "a link of a chain of 100,000 / a closure", 600 },
  } do
    local kind, count, name, limit = table.unpack(measure)
    local a, b = in_turn(ours("units.lua", kind, count), lua("units_peer.lua", kind, count))
    row { name = name, ours = time(a), peer = time(b), unit = "ns", by = "cpu", at_most = limit }
  end
  local await = in_turn(ours("units.lua", "await", "1000000"))
  row { name = "await of a settled task", ours = time(await), unit = "ns", by = "cpu",
    at_most = 200 }
end)

part("graphs", function()
  local chained, op, edge, without = in_turn(
    ours("units.lua", "op", "100000"), ours("units.lua", "graph_op", "100000"),
    ours("units.lua", "edge", "100000"), ours("units.lua", "no_edge", "100000"))
  row { name = "an op of a graph of 100,000 / of a chain", ours = time(op), peer = time(chained),
    unit = "ns", by = "cpu", times = 1.5 }
  row { name = "an edge with data", ours = { cpu = edge[2] - without[2] }, unit = "ns", by = "cpu",
    at_most = 100 }
  local once, twice = in_turn(
    ours("units.lua", "piped_once", "1000000"), ours("units.lua", "piped_twice", "1000000"))
  row { name = "1,000,000 items through two groups / one", ours = time(twice), peer = time(once),
    unit = "ns", by = "cpu", times = 2.3 }
  local list, iterated = in_turn(
    ours("units.lua", "item", "1000000"), ours("units.lua", "iterated_item", "1000000"))
  row { name = "an item of an iterator / of a list", ours = time(iterated), peer = time(list),
    unit = "ns", by = "cpu", times = 1.3 }
  local passing, logged = in_turn(
    ours("units.lua", "passing_item", "10000000"), ours("units.lua", "logged_item", "10000000"))
  row { name = "peak memory, 10,000,000 of an iterator", ours = passing[3] / 2 ^ 20, unit = "MiB",
    at_most = 30 }
  row { name = "the same with a log of 1,000,000 events", ours = logged[3] / 2 ^ 20, unit = "MiB",
    at_most = 150 }
  local streamed = in_turn(ours("units.lua", "stream_item", "1000000"))
  row { name = "an item of a stream", ours = time(streamed), unit = "ns", by = "cpu",
    at_most = 500 }
end)

part("strings", function()
  -- Steps set one of two texts that there are. Items have a new text each: an array of its bytes
  -- as input and as output, and a search among Lua's strings when the op reads it, where an
  -- integer is a number in a register.
  for _, measure in ipairs {
    { "step", "500000", "a step", 1.25 }, { "item", "100000", "an item", 2.25 },
  } do
    local kind, count, name, limit = table.unpack(measure)
    local a, b = in_turn(
      ours("units.lua", "string_" .. kind, count), ours("units.lua", kind, count))
    row { name = name .. " with strings / with integers", ours = time(a), peer = time(b),
      unit = "ns", by = "cpu", times = limit }
  end
end)

part("failures", function()
  local failed, refused, cancelled, retried, member = in_turn(
    ours("units.lua", "failed_item", "20000"), ours("units.lua", "refused_item", "20000"),
    ours("units.lua", "cancelled_task", "20000"),
    ours("units.lua", "retried_attempt", "20000"), ours("units.lua", "member", "1000"))
  for _, measure in ipairs {
    { "a failed item", failed, 9 }, { "an item that fails by ctx:fail", refused },
    { "a cancelled task", cancelled, 12 },
    { "a retried attempt", retried, 17 }, { "a member of 1,000 of add_parallel", member },
  } do
    local name, list, limit = table.unpack(measure)
    row { name = name, ours = time(list, 1, 1e-3), unit = "us", by = "cpu", at_most = limit }
  end
end)

part("sleepers", function()
  local count = "100000"
  local a, luv, cqueues = in_turn(
    ours("units.lua", "sleeper", count), lua("units_peer.lua", "luv_sleeper", count),
    lua("units_peer.lua", "cqueues_sleeper", count))
  row { name = "100,000 sleeps, a sleep / luv", ours = time(a), peer = time(luv), unit = "ns",
    by = "cpu", times = 0.7, chart = "100,000 sleeps at once", against = "luv" }
  row { name = "100,000 sleeps, a sleep / cqueues", ours = time(a), peer = time(cqueues),
    unit = "ns", by = "cpu", chart = "100,000 sleeps at once", against = "cqueues" }
  row { name = "their memory at its peak / luv", ours = a[3] / 2 ^ 20, peer = luv[3] / 2 ^ 20,
    unit = "MiB", times = 1 }
end)

part("swift", function()
  local typed, list, a, callback, method, b = in_turn(
    peer("calls", "call", "2000000"), peer("calls", "list", "2000000"),
    peer("calls_peer", "call", "2000000"), peer("calls", "callback", "2000000"),
    peer("calls", "method", "2000000"), peer("calls_peer", "callback", "2000000"))
  row { name = "vm.call with types / lua_pcall in C", ours = time(typed), peer = time(a),
    unit = "ns", by = "cpu", times = 4 }
  row { name = "vm.call with arrays / lua_pcall in C", ours = time(list), peer = time(a),
    unit = "ns", by = "cpu", times = 4 }
  row { name = "a Swift function, from Lua / one in C", ours = time(callback), peer = time(b),
    unit = "ns", by = "cpu", times = 2.5 }
  row { name = "a bound method, from Lua / one in C", ours = time(method), peer = time(b),
    unit = "ns", by = "cpu" }
  local get, small, encode, build, decode, read = in_turn(
    peer("data", "get", "1000000"), peer("data", "get_small", "1000000"),
    peer("data", "encode", "10000"), peer("data", "build", "10000"),
    peer("data", "decode", "10000"), peer("data", "read", "10000"))
  row { name = "get 100,000 integers of Swift / one", ours = time(get), peer = time(small),
    unit = "ns", by = "cpu", times = 1.2 }
  row { name = "encode a record of 10,000 / by hand", ours = time(encode), peer = time(build),
    unit = "ns", by = "cpu" }
  row { name = "decode a record of 10,000 / by hand", ours = time(decode), peer = time(read),
    unit = "ns", by = "cpu" }
  local bytes, async, at_once, pooled, fresh = in_turn(
    peer("data", "bytes", tostring(10 << 20)), peer("data", "call", "200000"),
    peer("data", "call_at_once", "200000"), peer("data", "pooled", "20000"),
    peer("data", "fresh", "2000"))
  row { name = "10 MiB of a script as Data", ours = time(bytes, 1, 10 * 1.048576), unit = "ms",
    by = "wall", at_most = 20 }
  row { name = "host.call, asynchronous / vm.call", ours = time(async), peer = time(at_once),
    unit = "ns", by = "cpu", more = 2000 }
  -- 12,500 and 2,000 requests a second.
  row { name = "a request of a host that stays", ours = time(pooled, 1, 1e-3), unit = "us",
    by = "wall", at_most = 80 }
  row { name = "a request with a host of its own", ours = time(fresh, 1, 1e-3), unit = "us",
    by = "wall", at_most = 500 }
end)

part("formats", function()
  -- The targets in MB/s of CPU time: of decoding, and of encoding.
  for _, shape in ipairs {
    { "tweets", 300, 400 }, { "catalogue", 350, 220 }, { "map", 180, 180 },
  } do
    for i, way in ipairs { "decode", "encode" } do
      local both = in_turn(ours("json.lua", shape[1], way))
      row { name = ("JSON: %s %s / lua-cjson"):format(way, shape[1]), ours = { cpu = both[1] },
        peer = { cpu = both[2] }, unit = "MB/s", by = "cpu", at_least = shape[1 + i] }
    end
  end
  for _, rows in ipairs { "lists", "records" } do
    local a, b = in_turn(ours("csv.lua", rows), running("python3", here .. "/csv_peer.py", rows))
    row { name = ("CSV: 150,000 rows, %s / Python"):format(rows), ours = time(a), peer = time(b),
      unit = "ms", by = "cpu", times = 2 }
  end
end)

part("programs", function()
  local count = "500"
  local captured, uncaptured, make, xargs = in_turn(
    took(flowlua, here .. "/programs.lua", count, "captured"),
    took(flowlua, here .. "/programs.lua", count, "uncaptured"),
    took("make", "-j8", "-f", here .. "/programs.mk", "COUNT=" .. count),
    took("sh", "-c", "seq " .. count .. " | xargs -P8 -I{} /bin/true"))
  row { name = "500 programs / make -j8", ours = time(uncaptured), peer = time(make), unit = "ms",
    by = "wall", times = 1.15, chart = "500 programs, 8 at a time", against = "make -j8" }
  row { name = "500 programs / xargs -P8", ours = time(uncaptured), peer = time(xargs), unit = "ms",
    by = "wall", times = 1, chart = "500 programs, 8 at a time", against = "xargs -P8" }
  row { name = "500 with their output / make -j8", ours = time(captured), peer = time(make),
    unit = "ms", by = "wall", times = 1.15 }
  row { name = "500 with their output / without", ours = time(captured), peer = time(uncaptured),
    unit = "ms", by = "wall", times = 1.35 }
end)

-- Servers for requests, and for ops on other nodes.
package.path = here .. "/../../Tests/scripts/lib/?.lua;" .. package.path
local servers = require "servers"
local function nginx() return servers.nginx(1 << 30) end

part("http", function()
  local server <close> = nginx()
  local count, url = "10000", server:url "/small"
  local all = url .. "?[1-" .. count .. "]"
  local a, c, whole, b = in_turn(
    ours("http.lua", "get", url, count), peer("http_peer", url, count),
    took(flowlua, here .. "/http.lua", "get", url, count),
    took("curl", "--no-progress-meter", "--parallel", "--parallel-max", "64", "-o", "/dev/null",
      all))
  row { name = "a GET, 64 at once / libcurl in C", ours = time(a), peer = time(c), unit = "us",
    by = "cpu", times = 1.5, chart = "a GET of 1 KB, CPU time", against = "libcurl in C" }
  row { name = "a GET, 64 at once / curl -Z", ours = time(a), peer = time(b, 1, 1e3 / count),
    unit = "us", by = "cpu", chart = "a GET of 1 KB, CPU time", against = "curl -Z" }
  row { name = "10,000 GETs, 64 at once / curl -Z", ours = time(whole), peer = time(b), unit = "ms",
    by = "wall", times = 1, chart = "10,000 GETs of 1 KB", against = "curl -Z" }
  local big, out = server:url "/big", compiled .. "/download"
  -- Into a new file: freeing the blocks of an old one isn't part of it.
  local function download(...)
    local run = took(...)
    return function()
      os.remove(out)
      return run()
    end
  end
  a, b = in_turn(
    download(flowlua, here .. "/http.lua", "save", big, out), download("curl", "-so", out, big))
  os.remove(out)
  row { name = "1 GiB into a file / curl", ours = time(a), peer = time(b), unit = "ms", by = "wall",
    times = 1.11, chart = "a download of 1 GiB", against = "curl" }
end)

part("hashes", function()
  local large, photos = compiled .. "/large", compiled .. "/photos"
  -- Both read the same file from memory, which has no blocks on the disk.
  assert(os.execute(("truncate -s 1G '%s'"):format(large)))
  assert(os.execute(("test -e '%s/39/99.jpg' || lua5.4 '%s/photos_files.lua' '%s'"):format(
    photos, here, photos)))
  local hash, sum, report, python = in_turn(
    took(flowlua, here .. "/hash.lua", large), took("sha256sum", large),
    took(flowlua, here .. "/../../examples/photos.lua", photos, photos .. ".json"),
    took("python3", here .. "/photos_peer.py", photos, photos .. ".json"))
  row { name = "SHA-256 of 1 GiB / sha256sum", ours = time(hash), peer = time(sum), unit = "ms",
    by = "wall", times = 1.11 }
  row { name = "SHA-256 of 4,000 files, JSON / Python", ours = time(report), peer = time(python),
    unit = "ms", by = "wall", times = 1, chart = "SHA-256 of 4,000 files, as JSON",
    against = "Python" }
end)

part("workers", function()
  local function in_workers(...)
    return running(flowlua, "--workers", "3", here .. "/workers.lua", ...)
  end
  local workers, main = in_turn(
    in_workers("compute", "64", "worker"), in_workers("compute", "64", "main"))
  row { name = "an item of 20 ms, in workers / main thread", ours = time(workers, 5),
    peer = time(main, 5), unit = "ms", by = "wall", faster = 1.9,
    chart = "64 ops of 20 ms of Lua, in workers", against = "the main thread" }
  for _, measure in ipairs {
    { "trivial", "100000", "ns", "an item of 100,000 in workers", 500 },
    { "string", "1000", "us", "10 KB to a worker and back", 6 },
    { "table", "1000", "us", "1,000 numbers there and back", 16 },
  } do
    local kind, count, unit, name, limit = table.unpack(measure)
    local a, b = in_turn(in_workers(kind, count), lua("workers_peer.lua", kind, count))
    -- The first group of a process starts the workers; memory is fresh in the second one, too.
    for i, group in ipairs { "first group", "second group", "warm" } do
      local is_warm = group == "warm"
      row { name = ("%s, %s / luv's pool"):format(name, group), ours = time(a, 2 * i - 1),
        peer = time(b, 2 * i - 1), unit = unit, by = "wall", at_most = is_warm and limit or nil,
        chart = is_warm and name or nil, against = "luv's thread pool" }
    end
  end
end)

part("memory", function()
  local few, many = 200000, 1000000
  local added_few, added, run_few, run = in_turn(
    ours("units.lua", "add", few), ours("units.lua", "add", many),
    ours("units.lua", "op", few), ours("units.lua", "op", many))
  local add = (added[3] - added_few[3]) / (many - few)
  local op = (run[3] - run_few[3]) / (many - few) - add
  row { name = "memory of an add", ours = add, unit = "B", at_most = 100 }
  row { name = "memory of an op's log", ours = op, unit = "B", at_most = 100 }
end)

part("timeline", function()
  local page = compiled .. "/timeline.html"
  local a, ready = in_turn(
    running(flowlua, "--virtual-clock", here .. "/timeline.lua", "100000", page),
    running(here .. "/ready", page))
  row { name = "timeline of 100,000 items", ours = time(a), unit = "ms", by = "cpu", at_most = 150 }
  row { name = "its size", ours = a[3], unit = "MB", at_most = 3 }
  row { name = "until it is ready in Chromium", ours = ready[1], unit = "ms", at_most = 1500 }
end)

part("kept", function()
  local folder = compiled .. "/journal"
  local function clean() os.execute(("rm -rf '%s'*"):format(folder)) end
  -- A new store each time, in the folder of the peer's file.
  local function fresh(run)
    return function()
      clean()
      return run()
    end
  end
  local function kept(...)
    return fresh(running(flowlua, "--keep", "--store", folder, here .. "/kept.lua", ...))
  end
  local a, b = in_turn(
    kept("serial", "2000"), fresh(peer("kept_peer", folder .. ".sqlite", "2000")))
  row { name = "a kept op / a commit of SQLite in C", ours = time(a), peer = time(b), unit = "us",
    by = "wall", times = 1.5, chart = "a kept op", against = "a commit of SQLite" }
  a, b = in_turn(kept("sleep", "12800"), ours("kept.lua", "sleep", "12800"))
  row { name = "a kept item of 1 ms, 64 at once / unkept", ours = time(a), peer = time(b),
    unit = "us", by = "wall", times = 1.11 }
  a, b = in_turn(kept("json", "2000"), ours("kept.lua", "json", "2000"))
  row { name = "a kept item with 10 KB of JSON / unkept", ours = time(a), peer = time(b),
    unit = "us", by = "wall" }
  do
    local server <close> = nginx()
    local url = server:url "/small"
    a, b = in_turn(kept("http", "2000", url), ours("kept.lua", "http", "2000", url))
  end
  row { name = "a kept item with a GET of 1 KB / unkept", ours = time(a), peer = time(b),
    unit = "us", by = "wall" }
  -- Both end with a status, because the run stays unfinished or would be executed.
  local function items(option)
    return took("sh", "-c", '"$@" || true', "sh", flowlua, option, "--store", folder,
      here .. "/kept.lua", "items", "100000")
  end
  clean()
  items "--keep"()
  a, b = in_turn(items "--resume", items "--why")
  row { name = "resume of 100,000 finished items", ours = time(a), unit = "ms", by = "wall",
    at_most = 500 }
  row { name = "--why of them", ours = time(b), unit = "ms", by = "wall", at_most = 1000 }
  clean()
end)

part("remote", function()
  local server
  local function remote(...)
    local url = "nats://127.0.0.1:" .. server.nats
    return running(flowlua, "--remote", url, here .. "/remote.lua", ...)
  end
  local function by_hand(kind, ...)
    return peer("remote_peer", kind, "nats://127.0.0.1:" .. server.nats, ...)
  end
  do
    local two <close> = servers.nats(flowlua, 2)
    server = two
    local a, b = in_turn(remote("items", "10000"), by_hand("items", "40000"))
    row { name = "a remote item that does nothing / libnats in C", ours = time(a),
      peer = { wall = b[1] }, unit = "us", by = "wall", times = 1 / 0.65,
      chart = "an item on other nodes", against = "libnats in C" }
    row { name = "the same, alone", ours = time(a), unit = "us", by = "wall", at_most = 33 }
    a, b = in_turn(remote("trip", "500"), by_hand("trip", "500"))
    row { name = "a remote op, there and back / libnats in C", ours = time(a),
      peer = { wall = b[1] }, unit = "us", by = "wall", more = 150 }
  end
  do
    local sent, got = compiled .. "/sent", compiled .. "/got"
    assert(os.execute(("truncate -s 1G '%s'"):format(sent)))
    -- Each time with another server and node, because the content travels once.
    local function fresh(run, ...)
      local words = { ... }
      return function()
        local one <close> = servers.nats(flowlua, 1)
        server = one
        os.remove(got)
        -- All that was written before is on the disk.
        assert(os.execute "sync")
        return run(table.unpack(words))()
      end
    end
    local ours_runs, peer_runs = fresh(remote, "file", sent), fresh(by_hand, "file", sent, got)
    bench.touch_memory(6 << 30)
    local a, b = in_turn(ours_runs, peer_runs)
    os.remove(sent)
    os.remove(got)
    row { name = "1 GiB to another node / libnats in C", ours = time(a), peer = { wall = b[1] },
      unit = "ms", by = "wall", times = 1 / 0.7, chart = "1 GiB to another node",
      against = "libnats in C" }
  end
  do
    local three <close> = servers.nats(flowlua, 3)
    server = three
    for _, measure in ipairs { { 1, 3000 }, { 10, 300 } } do
      local ms, count = table.unpack(measure)
      local a, b = in_turn(remote("sleep", count, ms), lua("remote_peer.lua", count, ms, 3))
      row { name = ("%d items of %d ms on 3 nodes / ideal"):format(count, ms), ours = time(a),
        peer = { wall = b[1] }, unit = "ms", by = "wall", times = 1 / 0.9 }
    end
    -- The lease of 5 s, and a second.
    row { name = "items of a killed node, until they have moved",
      ours = time(remote("killed", "m1", three.m1)()), unit = "ms", by = "wall", at_most = 6000 }
  end
end)

-- The gain of the bold mechanisms: flowlua with and without each. Instructions are counted once,
-- because they are the same each time. The first one, lua_resume of this program in place of the
-- library's, has nothing in its stead: the row of a coroutine switch says what it costs.
part("mechanisms", function()
  for _, measure in ipairs {
    { "tables", "read tables: a number sent / API", "number", 100000 },
    { "tables", "read tables: an object as JSON / API", "object", 50000 },
    { "frames", "read frames: a link of a chain / API", "continuation", 20000 },
    { "freed", "freed objects: a link / finalizers", "continuation", 20000 },
    { "pool", "pool of blocks: a sleep / malloc", "sleeper", 20000 },
  } do
    local mechanism, name, kind, count = table.unpack(measure)
    row { name = name, ours = bench.instructions("none", kind, count),
      peer = bench.instructions(mechanism, kind, count), unit = "instr.", times = 0.97 }
  end
  local a, b = in_turn(
    bench.without("none", "units.lua", "sleeper", "100000"),
    bench.without("pool", "units.lua", "sleeper", "100000"))
  row { name = "pool of blocks: a sleep of 100,000 / malloc", ours = time(a), peer = time(b),
    unit = "ns", by = "cpu" }
end)

local names, chosen = {}, {}
for i, each in ipairs(parts) do
  names[i] = each.name
  if only == "all" or only == each.name then chosen[#chosen + 1] = each end
end
if #chosen == 0 then
  io.stderr:write(("bench: no part is called %s: there are %s\n"):format(
    only, table.concat(names, ", ")))
  os.exit(2)
end
bench.head()
for _, each in ipairs(chosen) do each.measure() end
print()
print(bench.missed == 0 and "all targets met" or bench.missed .. " missed")
if chart then
  require "chart"(bench.rows, arg[4], chart)
  print("the chart is in " .. chart)
end
