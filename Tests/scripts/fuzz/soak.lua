-- A long-lived program's memory, descriptors, threads and child processes don't grow.
-- It does all that such programs do, again and again.
--
--   soak.lua [SECONDS [report]]     how long it runs, 3 by default; `report` prints what was measured
-- clock: real: a long-lived program runs on the machine's clock
local flow, testing, check, host = require "flow", require "flow.testing", require "check", require "host"
local seconds = tonumber(arg[1] or 3)
local report = arg[2] == "report"
local sanitized = os.getenv "FLOWLUA_SANITIZER"

local function count_of(folder)
  local list <close> = io.popen("ls " .. folder)
  local number = 0
  for _ in list:lines() do number = number + 1 end
  return number
end

local process = assert(io.open("/proc/self/stat")):read("n")
-- In kB of memory, or a number of things. The pipe and its shell are there at each look.
local function measure()
  collectgarbage()
  collectgarbage()
  local status = assert(io.open "/proc/self/status"):read("a")
  local children <close> = assert(io.open(("/proc/%d/task/%d/children"):format(process, process)))
  local _, number = children:read("a"):gsub("%d+", "")
  return {
    resident = tonumber(status:match "VmRSS:%s*(%d+)"), lua = collectgarbage "count" // 1,
    threads = tonumber(status:match "Threads:%s*(%d+)"), children = number,
    descriptors = count_of(("/proc/%d/fd"):format(process)),
  }
end

local items = {}
for i = 1, 40 do items[i] = i end
local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, gives = { m = "integer" }, run = function(ctx)
  if ctx.index % 10 == 0 then flow.sleep(0.0002) end
  if ctx.index % 13 == 0 then ctx:fail("unlucky", { code = ctx.index }) end
  ctx:set("m", 2 * ctx:get "n")
end })
local WorkerOp = flow.op("WorkerOp", { thread = "worker", needs = { n = "integer" }, gives = { m = "table" },
  run = function(ctx)
    if ctx.index % 17 == 0 then error { text = "unlucky" } end
    ctx:log("item", ctx.index)
    ctx:set("m", { ctx:get "n", ("x"):rep(100) })
  end })
local secret = 0

-- The work of each round. Each leaves only what a collection removes.
local work = {
  function()  -- runs, their views, and callbacks
    local run = flow.new("runs"):data { a = 1 }
      :add(flow.op("SetOp", function(ctx) ctx:set("b", { ctx:get "a" }) ctx:log("said", {}) ctx:progress(1, 2) end))
      :case("a", "b"):add(ItemOp):otherwise():combine()
      :will_start(function() flow.sleep(0) end):did_finish(function(run) assert(run.ok) end)
      :add_finally(flow.op("CloseOp", function() end)):run()
    assert(#run:summary() > 0 and #run:events() > 0 and #run:dot() > 0)
  end,
  function()  -- groups
    local run = flow.new("group"):data { list = items }:add_grouped(ItemOp, { input = "list", output = "out",
      failures = "failures", allow_failure = true, max_concurrent = 5 }):run()
    assert(run.ok and #run.data.failures == 3)
    assert(not flow.new("group"):data { list = items }:add_grouped(ItemOp, { input = "list" }):run().ok)
    assert(flow.new("both"):add_parallel(flow.ops.SleepOp(0), flow.ops.PrintOp "x"):run().ok)
  end,
  function()  -- workers
    local run = flow.new("workers"):data { list = items }:add_grouped(WorkerOp, { input = "list", output = "out",
      failures = "failures", allow_failure = true }):run()
    assert(run.ok and #run.data.out == 38, run.error)
    -- The code of each is its own.
    local n = secret
    assert(flow.resolved(1):next(function(task) return task.result + n end, { thread = "worker" }):await() == n + 1)
    assert(flow.op("FailOp", { thread = "worker", run = function() error(n) end }):run().error)
    local busy = flow.op("LoopOp", { thread = "worker", run = function() while true do end end }):start()
    busy:cancel()
    busy:wait()
  end,
  function()  -- machines
    local count = 0
    local run = flow.machine { name = "m", start = "a",
      emit = function(result) return result == 3 and "three" or nil end,
      flow.any_step { flow.on("three", flow.forward "b") },
      flow.step("a", { run = function() count = count + 1 return count end, flow.next(flow.stay()) }),
      flow.step("b", { run = function() return {} end, flow.next(flow.forward "c") }),
      flow.step("c", { run = flow.ops.PrintOp "c", flow.next(flow.forward "d") }),
      flow.step("d", { run = function(state) flow.sleep(0) return { count = count } end }) }:run {}
    assert(run.ok and run.result.count == 3, run.error)
  end,
  function()  -- programs
    assert(flow.exec({ "cat" }, { stdin = ("x"):rep(100000) }):await().stdout:len() == 100000)
    assert(not pcall(function() flow.exec { "false" }:await() end))
    assert(not pcall(function() flow.exec { "no such program" }:await() end))
    local task = flow.exec { "sleep", "100" }
    task:cancel()
    task:wait()
    assert(not pcall(function() flow.exec({ "sleep", "100" }, { timeout = 0.001 }):await() end))
  end,
  function()  -- timeouts, of what waits and what is busy
    assert(flow.op("WaitOp", { timeout = 0.001, run = function(ctx)
      ctx:defer(function() flow.sleep(0) end)
      flow.sleep(100)
    end }):run().error.kind == "timeout")
    assert(flow.op("BusyOp", { timeout = 0.001, run = function() while true do pcall(error) end end }):run().error)
  end,
  function()  -- cancelling, and what is left over
    local runs = {}
    for i = 1, 10 do
      runs[i] = flow.op("WaitOp", function()
        local child <close> = flow.spawn(flow.sleep, 100)
        flow.op("InnerOp", function() flow.sleep(100) end):start()
        flow.sleep(100)
      end):start()
    end
    for _, run in ipairs(runs) do run:cancel("enough") end
    for _, run in ipairs(runs) do run:wait() assert(run.cancelled) end
    flow.context()
    flow.context().task:next(print)
    coroutine.wrap(function() coroutine.yield(flow.context().task) end)()
  end,
  function()  -- retries and errors
    assert(not flow.op("RetryOp", { retry = { attempts = 3, delay = 0.0001 }, run = function() error({}) end }):run().ok)
    local Nested = flow.op("NestedOp", function() return flow.failed(setmetatable({}, { __tostring = error })) end)
    assert(not flow.new("nested"):add(Nested):run().ok)
    for _ = 1, 20 do pcall(flow.op, "BadOp", { unknown = {} }) pcall(ItemOp.start, {}) end
    assert(flow.op("NeedOp", { needs = { x = "string" }, run = print }):run { x = {} }.error)
  end,
  function()  -- secrets; how many there are is bounded, as they are remembered
    secret = secret + 1
    local text = ("secret number %d"):format(secret % 50)
    local run = flow.op("SecretOp", function(ctx) ctx:log(ctx:get "key") error(ctx:get "key") end)
      :run { key = flow.secret(text) }
    check.lacks(run:summary() .. tostring(run.error), text)
  end,
  function()  -- tasks
    local first = flow.context()
    local task = first.task
    for _ = 1, 30 do task = task:next_on_success(function(n) return n + 1 end) end
    first:set_result(1)
    assert(task:await() == 31)
    local list = { flow.with_delay(0.0001, 1), flow.resolved(2), flow.spawn(function() flow.sleep(0) return 3 end) }
    assert(#flow.when_all_succeed(list):await() == 3 and flow.when_all_finish(list):await().n == 3)
    assert(flow.when_any_finish(list):await())
    assert(task:next(function() return flow.cancelled "no" end):wait())
    table.sort({ 3, 1, 2 }, function(a, b) flow.sleep(0) return a < b end)
  end,
  function()  -- a virtual clock
    local run = testing.run(flow.op("SlowOp", { retry = { attempts = 2, delay = 1000 }, run = function(ctx)
      flow.sleep(1000)
      ItemOp:run { n = 1 }
      if ctx.attempt == 1 then error "again" end
    end }), { replace = { ItemOp = { m = 2 } } })
    assert(run.ok and run.duration == 3000, run.error)
  end,
}

local function round() for _, each in ipairs(work) do each() end end

-- The clock of the machine, whichever flow has.
local function now() return (assert(io.open "/proc/uptime"):read("n")) end

local begin, rounds, samples = now(), 0, {}
while now() - begin < seconds or #samples < 12 do
  repeat
    round()
    rounds = rounds + 1
  until now() - begin >= #samples * seconds / 50
  local sample = measure()
  sample.time, sample.rounds = now() - begin, rounds
  samples[#samples + 1] = sample
  if report then
    print(("%7.1f s %7d rounds %8d kB resident %7d kB of Lua %3d threads %3d descriptors %2d children"):format(
      sample.time, rounds, sample.resident, sample.lua, sample.threads, sample.descriptors, sample.children))
    io.stdout:flush()
  end
end

-- The least of what was measured between two shares of the time, as single values swing.
local function least(key, from, to)
  local found = math.huge
  for i = #samples * from // 1 + 1, #samples * to // 1 do found = math.min(found, samples[i][key]) end
  return found
end
-- Up to four helper threads start when they are first needed at the same time, and stay.
local allowed = { resident = sanitized and math.huge or 1024, lua = 64, threads = 3, descriptors = 0, children = 0 }
for key, limit in pairs(allowed) do
  local early, late = least(key, 0.4, 0.7), least(key, 0.7, 1)
  assert(late - early <= limit, ("%s: %d more after %d rounds"):format(key, late - early, rounds))
end

-- A session, with the lines that people type. It says itself how much there is.
local typed = [[
function measure() collectgarbage() collectgarbage()
  local status = io.open "/proc/self/status":read "a"
  print("measured", status:match "VmRSS:%s*(%d+)", collectgarbage "count" // 1) end
]] .. ([[
local n = 1
run = flow.op("NapOp", function(ctx) flow.sleep(0) ctx:log(n) end):start()
run
run:await()
=run.state, { 1, { 2 }, a = "b" }
flow.op("BadOp", {})
error { code = 2 }
pcall(function() flow.failed("no"):await() end)
if run
  then print(run) end
nothing.x
measure()
]]):rep(math.max(100, seconds * 20 // 1))
local session = host.run(host.binary, { "-i" }, { stdin = typed })
check.equal(session.status, 0)
local resident, lua = {}, {}
for a, b in session.stdout:gmatch "measured\t(%d+)\t(%d+)" do
  resident[#resident + 1], lua[#lua + 1] = tonumber(a), tonumber(b)
end
assert(#lua >= 100, session.stdout:sub(1, 2000) .. session.stderr:sub(1, 2000))
if report then print("a session:", resident[#resident // 2], resident[#resident], lua[#lua // 2], lua[#lua]) end
assert(sanitized or resident[#resident] - resident[#resident // 2] <= allowed.resident, "a session grows")
assert(lua[#lua] - lua[#lua // 2] <= allowed.lua, "what a session has in Lua grows")
