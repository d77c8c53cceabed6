-- Caught errors of each function leak no memory, neither Lua's nor the host's.
-- The argument is their number: 100000, which takes minutes, finds a loss of 32 bytes in each.
local flow, check = require "flow", require "check"
local function resident()
  local file <close> = assert(io.open("/proc/self/statm"))
  local _, pages = file:read("n", "n")
  return pages * 4096
end
local AnOp, blueprint, dispatcher = flow.op("AnOp", function() end), flow.new("a"), flow.dispatcher { input = "l" }
local finished
local run = flow.op("RunOp", function(ctx) finished = ctx end):run()

local calls = {}
local function add(fn) calls[#calls + 1] = fn end
add(function() flow.op() end)
add(function() flow.op("AOp", {}) end)
add(function() flow.op("AOp", { run = print, needs = { a = "strng" } }) end)
add(function() flow.op("AOp", { run = print, needs = { a = print, b = 1 } }) end)
add(function() flow.new() end)
add(function() flow.dispatcher { input = "l", as = {} } end)
add(function() flow.dispatcher { input = "l", inptu = {} } end)
add(function() flow.sleep("soon") end)
add(function() flow.machine { name = "m", start = "a", [{}] = {} } end)
add(function() flow.machine { name = "m", start = "b", flow.step("a", { run = print }) } end)
add(function() flow.step("a", { run = print, {} }) end)
add(function() flow.on("e", {}) end)
add(function() flow.forward {} end)
add(function() AnOp:start { 1 } end)
add(function() AnOp:run { x = {}, [{}] = {} } end)
add(function() AnOp.x = {} end)
add(function() AnOp.start({}) end)
add(function() blueprint:data { x = {}, [1] = {} } end)
add(function() blueprint:needs { a = print, b = 1 } end)
add(function() blueprint:add(AnOp, { timeot = 1 }) end)
add(function() blueprint:add(blueprint) end)
add(function() blueprint:add_grouped(AnOp, { input = "l" }) end)
add(function() blueprint:add_grouped(AnOp, dispatcher) end)
add(function() blueprint:will_start({}) end)
add(function() blueprint:did_finish({}) end)
add(function() blueprint.copy(AnOp) end)
add(function() blueprint:case("x") end)
add(function() blueprint("x") end)
add(function() run:wait({}) end)
add(function() run:summary { time = "x" } end)
add(function() run.events(blueprint) end)
add(function() run:next(1) end)
add(function() flow.exec { "a\0b" } end)
add(function() flow.exec({ "true" }, { timeout = {} }) end)
add(function() run.await(blueprint) end)
add(function() finished:get("x") end)
add(function() finished:set("x", {}) end)
add(function() finished:has("x") end)
add(function() finished:log({}) end)
add(function() finished:fail("x", {}) end)
local inside = {}
local function add_inside(fn) inside[#inside + 1] = fn end
add_inside(function(ctx) ctx:get({}) end)
add_inside(function(ctx) ctx:get("x", "strng") end)
add_inside(function(ctx) ctx:set({}, {}) end)
add_inside(function(ctx) ctx:has() end)
add_inside(function(ctx) ctx.log({}) end)
add_inside(function(ctx) ctx:log(setmetatable({}, { __tostring = error })) end)
add_inside(function(ctx) ctx:fail({}) end)
add_inside(function(ctx) ctx:fail("x", { kind = {} }) end)
add_inside(function(ctx) ctx:defer({}) end)
add_inside(function(ctx) ctx.x = {} end)

local times = tonumber(arg[1]) or os.getenv "FLOWLUA_SANITIZER" and 200 or 2000
local allowed = math.max(times * 20, 1000000)
local function measure(what, round)
  round(times // 5)
  collectgarbage()
  collectgarbage()
  local lua, all = collectgarbage("count"), resident()
  round(times)
  collectgarbage()
  collectgarbage()
  -- Userdata made in advance come and go by the batch, and a table that is full doubles, which may be 47 KB.
  assert(collectgarbage("count") - lua < 64, ("%s: %g KB more of Lua"):format(what, collectgarbage("count") - lua))
  -- A sanitizer keeps what is freed, and notes of its own.
  assert(os.getenv "FLOWLUA_SANITIZER" or resident() - all < allowed, ("%s: %d bytes more"):format(what, resident() - all))
end
local function caught(fn, ctx, times)
  for _ = 1, times do if pcall(fn, ctx) then error("nothing was raised") end end
end
for i, fn in ipairs(calls) do
  measure("line " .. debug.getinfo(fn, "S").linedefined, function(times) caught(fn, nil, times) end)
end
flow.op("InsideOp", function(ctx)
  for i, fn in ipairs(inside) do
    measure("line " .. debug.getinfo(fn, "S").linedefined, function(times) caught(fn, ctx, times) end)
  end
end):run()
-- Ops that fail, and whose errors are looked at.
measure("failing ops", function(times)
  for _ = 1, times // 10 do
    assert(flow.op("FailOp", function(ctx) ctx:fail("no", { t = {} }) end):run().error)
    assert(flow.op("RaiseOp", function() error({}) end):run().error)
    assert(flow.op("SleepOp", function() flow.sleep(0) error "late" end):run().error)
    assert(flow.op("NeedOp", { needs = { x = "string" }, run = print }):run { x = {} }.error)
  end
end)
