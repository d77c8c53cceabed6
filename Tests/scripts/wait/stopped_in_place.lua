-- A wait below a C function ends with its op, flow or starter.
-- It ends by a timeout of the op or of the flow that encloses it, by cancel, and with the op that has started it.
-- The error is raised at the wait, as anywhere.
-- clock: real: the virtual clock stands still while a program runs
-- expect-stdout:
--| done
local flow = require "flow"
local check = require "check"
local long = 60

local function sleep() flow.sleep(long) end
local positions = require "places"(sleep)
function positions.await() string.gsub("a", "a", function() flow.with_delay(long):await() end) end
function positions.wait() string.gsub("a", "a", function() flow.context().task:wait(long) end) end
function positions.exec() string.gsub("a", "a", function() flow.exec({ "sleep", tostring(long) }):await() end) end

-- The first stretch of an op's code, and a later one: the second is run by the loop.
local function op(options, position, is_later)
  options.run = function(ctx)
    if is_later then flow.sleep(0.001) end
    if options.begin then options.begin(ctx) end
    position(ctx)
  end
  local begin = options.begin
  options.begin = nil
  local made = flow.op("PlaceOp", options)
  options.begin = begin
  return made
end

local function after(seconds, body)
  return flow.spawn(function() flow.sleep(seconds) body() end)
end

local ways = {
  timeout = function(position, is_later)
    local run = op({ timeout = 0.02 }, position, is_later):run()
    return run, "timed out after 0.02s"
  end,
  cancel = function(position, is_later)
    local run = op({ begin = function(ctx) after(0.02, function() ctx.run:cancel("enough") end) end },
      position, is_later):run()
    return run, "cancelled: enough"
  end,
  flow_timeout = function(position, is_later)
    local run = flow.new("outer"):add(flow.new("inner"):add(op({}, position, is_later)), { timeout = 0.02 })
      :run()
    return run, "timed out after 0.02s"
  end,
  started = function(position, is_later)
    local inner = op({}, position, is_later)
    local run = flow.op("StartOp", { timeout = 0.02, run = function() return inner:start() end }):run()
    return run, "timed out after 0.02s"
  end,
  cancelled_starter = function(position, is_later)
    local inner = op({}, position, is_later)
    local run = flow.op("StartOp", function(ctx)
      after(0.02, function() ctx.run:cancel("enough") end)
      flow.spawn(function() inner:start() end)
      flow.sleep(long)
    end):run()
    return run, "cancelled: enough"
  end,
  group = function(position, is_later)
    local run = flow.new("group"):data { keys = { 1 } }
      :add_grouped(op({ needs = { item = "integer" } }, position, is_later), { input = "keys" })
    local started
    run = run:will_start(function(r) started = r end)
    after(0.02, function() started:cancel("enough") end)
    return run:run(), "cancelled: enough"
  end,
  task = function(position, is_later)
    local task
    after(0.02, function() task:cancel("enough") end)
    -- The task isn't known before its function has come to its first wait.
    local started = flow.context()
    local made = started.task:next(function() position({
      set = function() end, get = function(_, _, predicate) predicate() end }) end)
    task = made
    if is_later then flow.sleep(0.001) end
    started:set_result()
    task:wait()
    return task, "cancelled: enough"
  end,
}

local function checked(what, way, position, is_later)
  local begin = flow.now()
  local settled, message = way(position, is_later)
  local took = flow.now() - begin
  assert(took < 30, ("%s took %g s"):format(what, took))
  check.equal(settled.error.message, message, what)
end

local function sorted(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- In a task: while the main chunk waits, no other wait of this kind is allowed.
flow.spawn(function()
  for _, way in ipairs(sorted(ways)) do
    for _, place in ipairs(sorted(positions)) do
      for _, is_later in ipairs { false, true } do
        checked(("%s, %s, %s"):format(way, place, is_later), ways[way], positions[place], is_later)
      end
    end
  end

  -- Predicates of what an op declares.
  local slow = function() sleep() return true end
  local NeedOp = flow.op("NeedOp", { needs = { key = slow }, timeout = 0.02, run = function() end })
  checked("needs", function() return NeedOp:run { key = 1 }, "timed out after 0.02s" end)
  local GiveOp = flow.op("GiveOp", { gives = { key = slow }, run = function(ctx) ctx:set("key", 1) end })
  checked("gives", function()
    return flow.new("f"):add(GiveOp, { timeout = 0.02 }):run(), "timed out after 0.02s"
  end)
  checked("a predicate of a case", function()
    local case = flow.new("c"):case(function() string.gsub("a", "a", sleep) return true end):add(GiveOp):combine()
    return flow.new("f"):add(case, { timeout = 0.02 }):run(), "timed out after 0.02s"
  end)
  checked("a will_start", function()
    local callback = flow.new("c"):will_start(function() string.gsub("a", "a", sleep) end):add(GiveOp)
    return flow.new("f"):add(callback, { timeout = 0.02 }):run(), "timed out after 0.02s"
  end)

  -- It can be caught, is raised again at the next wait, and one that continues regardless is ended.
  local seen = {}
  local run = flow.op("CatchOp", function(ctx)
    after(0.01, function() ctx.run:cancel("enough") end)
    for i = 1, 3 do
      local ok, e = pcall(string.gsub, "a", "a", sleep)
      seen[i] = ("%s %s"):format(ok, e.message)
    end
    error("other")
  end):run()
  check.equal(table.concat(seen, "; "), ("; false cancelled: enough"):rep(3):sub(3))
  check.equal(run.state, "cancelled")

  -- Cleanups aren't stopped by it.
  local cleaned
  run = flow.op("CleanOp", { timeout = 0.2, run = function(ctx)
    ctx:defer(function() string.gsub("a", "a", function() flow.sleep(0.02) end) cleaned = true end)
    flow.sleep(long)
  end }):run()
  check.equal(cleaned, true)
  check.equal(run.error.message, "timed out after 0.2s")
  print "done"
end)
