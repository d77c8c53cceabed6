-- Random structures of ops within ops, flows and machines, killed again and again, have each effect as often as without a kill.
-- clock: real: the script is another program
--
--   structures.lua [COUNT [SEED [KILLS]]]     that many structures, 30 by default, each with up to KILLS kills, 4 by
--                                             default: before or after one of its effects, some milliseconds after its
--                                             start, or at a point of the store's code, which only debug builds have
local check, flow, recovery = require "check", require "flow", require "recovery"

local count = math.tointeger(arg[1] or 30)
local seed = math.tointeger(arg[2] or os.time())
local most_kills = math.tointeger(arg[3] or 4)

-- Builds what `spec` describes. The process is killed around the effect number CUT // 2: before it, if CUT is even; or
-- after LIFE milliseconds.
local TEXT = [[
local life = os.getenv "LIFE"
if life then os.execute(("{ sleep %.3f; kill -9 $PPID; } > /dev/null 2>&1 &"):format(life / 1000)) end
local function act(text)
  -- No value of the script: it would be a part of the code.
  local cut = math.tointeger(os.getenv "CUT")
  local function die() os.execute "kill -9 $PPID" while true do end end
  local number = 1
  local file = io.open "effects"
  if file then
    for _ in file:lines() do number = number + 1 end
    file:close()
  end
  if cut == 2 * number then die() end
  file = io.open("effects", "a")
  file:write(text, "\n")
  file:close()
  if cut == 2 * number + 1 then die() end
end

local build = {}
local function make(s)
  s.made = s.made or build[s.kind](s)
  return s.made
end
function build.leaf(s)
  local name, amount, once, retried, pause, collected = s.name, s.amount, s.once, s.retried, s.pause, s.collected
  return flow.op(name, {
    needs = { item = "integer?" }, effect = once and "once" or nil, thread = s.worker and "worker" or nil,
    retry = retried and 2 or nil,
    undo = s.undo and function() act("undo " .. name) end or nil,
    run = function(ctx)
      local value = ctx:has "item" and ctx:get "item" or amount
      if pause then flow.sleep(pause) end
      if retried and ctx.attempt == 1 then ctx:fail "once more" end
      act(once and ctx.name or name .. ":" .. value)
      -- Ops that execute at the same time set keys of their own. Values of an op that is settled as done aren't known.
      if not once then ctx:set(collected and "out" or name, value * 2) end
    end,
  })
end
function build.seq(s)
  local made = flow.new(s.name)
  for _, child in ipairs(s) do made:add(make(child)) end
  return made
end
function build.par(s)
  local children = {}
  for i, child in ipairs(s) do children[i] = make(child) end
  return flow.new(s.name):add_parallel(table.unpack(children))
end
function build.group(s)
  return flow.new(s.name):data { [s.name] = s.items }:add_grouped(make(s[1]), {
    input = s.name, as = "item", max_concurrent = s.at_once,
    output = s.collects and s.name .. "_outs" or nil, collect = s.collects and "out" or nil,
  })
end
function build.case(s)
  return flow.new(s.name):data { [s.name] = "b" }
    :case(s.name, "a"):add(make(s[1])):case(s.name, "b"):add(make(s[2])):combine()
end
function build.wrap(s)
  local name, twice, acts = s.name, s.twice, s.acts
  return flow.wrap(make(s[1]), function(_, run)
    if acts then act("around " .. name) end
    run()
    if twice then run() end
  end)
end
function build.inner(s)
  local name, times, acts, child, collected = s.name, s.times, s.acts, make(s[1]), s.collected
  return flow.op(name, { needs = { item = "integer?" }, run = function(ctx)
    if acts then act("body of " .. name) end
    for i = 1, times do
      local run = child:run { item = s.passes and ctx:has "item" and ctx:get "item" or nil }
      if not run.ok then error(run.error) end
    end
    ctx:set(collected and "out" or name, times)
  end })
end
function build.machine(s)
  local steps = {}
  for i, child in ipairs(s) do
    local run
    if child.kind == "leaf" then
      local name = child.name
      run = function(state) act("step " .. name) return state end
    else
      run = make(child)
    end
    local way = s[i + 1] and flow.next(flow.forward(tostring(i + 1)))
    steps[i] = flow.step(tostring(i), { run = run, final = not way or nil, way or nil })
  end
  return flow.machine { name = s.name, start = "1", table.unpack(steps) }
end
-- A flow that fails always, and undoes its effects.
function build.undone(s)
  local failing = flow.new(s.name .. "_flow")
  for _, child in ipairs(s) do failing:add(make(child)) end
  failing:add(flow.op("FailOp", function(ctx) ctx:fail "as always" end))
  return flow.op(s.name, function(ctx)
    local run = failing:run()
    if run.ok or not tostring(run.error):find "as always" then error(run.error or "no error") end
  end)
end

local run = make(spec):run { item = nil }
if not run.ok then error(run.error) end
local lines = {}
for key, value in pairs(run.data) do
  lines[#lines + 1] = key .. "=" .. (type(value) == "table" and table.concat(value, ",") or tostring(value))
end
table.sort(lines)
flow.fs.write("data", table.concat(lines, "\n"))
]]

-- MARK: Random structures

local random = math.random
local function one_in(n) return random(n) == 1 end
local named

local function name(prefix, suffix)
  named = named + 1
  return prefix .. named .. (suffix or "")
end

-- How many effects it has, how many of its ops may be executing at one time, and whether one is executed only once.
local function measure(s)
  if s.kind == "leaf" then
    s.effects, s.width, s.has_once = 1, 1, s.once
    return s
  end
  local sum, most, total = 0, 0, 0
  for _, child in ipairs(s) do
    sum, most, total = sum + child.effects, math.max(most, child.width), total + child.width
    s.has_once = s.has_once or child.has_once
  end
  local kinds = {
    par = function() return sum, total end,
    group = function() return sum * #s.items, most * math.min(#s.items, 2 * s.at_once) end,
    wrap = function() return sum * (s.twice and 2 or 1) + (s.acts and 1 or 0), most + 1 end,
    inner = function() return sum * s.times + (s.acts and 1 or 0), most + 1 end,
    undone = function() return 2 * sum, most + 1 end,
  }
  s.effects, s.width = (kinds[s.kind] or function() return sum, most end)()
  return s
end

local function leaf(options)
  local s = { kind = "leaf", name = name("Pay", "Op"), amount = one_in(3) and 7 or 5 }
  for key, value in pairs(options or {}) do s[key] = value end
  if one_in(4) then s.retried = true end
  if one_in(3) then s.pause = random(3) / 1000 end
  return measure(s)
end

local make_node

local makers = {}
function makers.seq(depth)
  local s = { kind = "seq", name = name "flow" }
  while #s < random(3) do
    local child = make_node(depth - 1)
    -- Equal steps.
    for _ = 1, one_in(2) and random(3) or 1 do s[#s + 1] = child end
  end
  return s
end
function makers.par(depth)
  return { kind = "par", name = name "both", make_node(depth - 1, true), make_node(depth - 1, true) }
end
function makers.group(depth)
  local child = one_in(3) and leaf { worker = true, once = nil } or make_node(depth - 1)
  child.collected = child.kind == "leaf" and not child.once or child.kind == "inner"
  local items = {}
  for i = 1, random(2, 4) do items[i] = one_in(3) and i or 5 end
  return {
    kind = "group", name = name "list", child, items = items, at_once = child.has_once and 1 or random(3),
    collects = child.collected,
  }
end
function makers.case(depth) return { kind = "case", name = name "choice", make_node(depth - 1), make_node(depth - 1) } end
function makers.wrap(depth)
  return { kind = "wrap", name = name "Wrap", make_node(depth - 1), twice = one_in(4), acts = one_in(2) }
end
function makers.inner(depth)
  return {
    kind = "inner", name = name("Outer", "Op"), make_node(depth - 1), times = random(2), acts = one_in(2),
    passes = one_in(2),
  }
end
function makers.machine(depth)
  local s = { kind = "machine", name = name "machine" }
  for i = 1, random(2, 3) do
    local child = one_in(2) and leaf { once = nil } or make_node(depth - 1)
    s[i] = child.kind ~= "machine" and child or leaf()
  end
  return s
end
function makers.undone()
  local s = { kind = "undone", name = name("Undo", "Op") }
  for i = 1, random(2) do
    s[i] = leaf { undo = true, loose = true }
    if one_in(3) then s[i] = measure { kind = "wrap", name = name "Wrap", s[i] } end
  end
  return s
end
local kinds = { "seq", "seq", "par", "group", "group", "case", "wrap", "wrap", "inner", "inner", "machine", "undone" }

function make_node(depth, is_beside)
  if depth <= 0 or one_in(6) then return leaf { once = not is_beside and one_in(4) or nil } end
  return measure(makers[kinds[random(#kinds)]](depth))
end

local function structure(number)
  math.randomseed(seed, number)
  while true do
    named = 0
    local s = measure(makers.seq(4))
    if s.effects > 1 and s.effects <= 24 then return s end
  end
end

-- The description as code; a child that has several places is made once.
local function literal(s)
  local parts, made = {}, {}
  local function add(node)
    if made[node] then return made[node] end
    local fields = {}
    for key, value in pairs(node) do
      if type(key) == "string" and type(value) ~= "table" then
        fields[#fields + 1] = ("%s = %s"):format(key, type(value) == "string" and ("%q"):format(value) or value)
      end
    end
    table.sort(fields)
    if node.items then fields[#fields + 1] = "items = { " .. table.concat(node.items, ", ") .. " }" end
    for _, child in ipairs(node) do fields[#fields + 1] = add(child) end
    parts[#parts + 1] = ("nodes[%d] = { %s }"):format(#parts + 1, table.concat(fields, ", "))
    made[node] = ("nodes[%d]"):format(#parts)
    return made[node]
  end
  local last = add(s)
  return "local nodes = {}\n" .. table.concat(parts, "\n") .. "\nlocal spec = " .. last .. "\n"
end

-- MARK: Kills

local function tally(effects, into)
  for _, line in ipairs(effects) do into[line] = (into[line] or 0) + 1 end
  return into
end

local function loose(s, into)
  if s.loose then into[s.name] = true end
  for _, child in ipairs(s) do loose(child, into) end
  return into
end

local with_points = recovery.program_with_points()

-- Executes a structure whole, and then again with kills; returns the number of kills, and of effects that were repeated.
local function prove(number)
  local s = structure(number)
  local text = literal(s) .. TEXT
  -- A debug build is slow.
  local has_points = with_points and number % 4 == 0
  local script = recovery.script(text, has_points and with_points or nil)
  local result = script:run { "--workers=2" }
  check.equal(result.status, 0, result.stderr)
  local whole, data = tally(script:effects(), {}), flow.fs.read(script.folder .. "/data")
  flow.fs.remove(script.folder .. "/data")

  local found, kills, lives, again, words, cuts, has_ended = {}, 0, 0, 0, {}, {}, false
  local ok, problem = pcall(function()
    repeat
      lives = lives + 1
      assert(lives < 60, "it doesn't finish")
      -- The two before the first effect would repeat each other.
      local environment, way = {}, random(3)
      if kills >= most_kills then
        way = nil
      elseif way == 1 and has_points then
        environment.FLOWLUA_CRASH_AT = random(10 + 6 * s.effects)
      elseif way == 2 then
        environment.LIFE = random(has_points and 200 or 20)
      else
        environment.CUT = random(2, 2 * s.effects + 1)
      end
      cuts[#cuts + 1] = way and ("%s=%d"):format(next(environment)) or "none"
      result = script:run { "--resume", "--workers=2", environment = environment, table.unpack(words) }
      tally(script:effects(), found)
      words = {}
      if result.status == 137 then
        kills = kills + 1
        -- Killed after the record of its end: another process would begin a new run.
        has_ended = flow.fs.exists(script.folder .. "/data") and recovery.stored(script) == "finished"
      elseif result.status ~= 0 then
        local asked = result.stderr:match "([^]/[]+)%] had started in run r%w+, and may have had its effect"
        assert(asked, result.stderr)
        -- A wrapper has the name of its op.
        local _, finished = recovery.stored(script, ", executed only once")
        local was_done = (found[asked] or 0) > (finished[asked] or 0)
        words = { "--settle", asked .. "=" .. (was_done and "done" or "again") }
      end
    until result.status == 0 or has_ended
    check.equal(flow.fs.read(script.folder .. "/data"), data)
    local free, repeated = loose(s, {}), 0
    for effect, times in pairs(whole) do
      local total = found[effect] or 0
      if total < times then error(("%d of %d effects '%s' are missing"):format(times - total, times, effect)) end
    end
    for effect, total in pairs(found) do
      if not whole[effect] then error("an effect that the whole run hasn't: " .. effect) end
      local excess = total - whole[effect]
      if not free[effect:match "^undo (.+)$" or effect:match "^(.+):"] then
        repeated = repeated + excess
        if excess > 0 and not effect:find ":" and effect:find "^Pay" then error(effect .. ", once, was executed again") end
      end
    end
    -- Processes that ended with a question, too, have stopped what else was executing.
    local most = (lives - 1) * s.width
    if repeated > most then error(("%d effects were repeated, and %d may be"):format(repeated, most)) end
    again = repeated
  end)
  if not ok then
    error(("structure %d of seed %d, killed by %s, in %s: %s"):format(
      number, seed, table.concat(cuts, ", "), script.folder, tostring(problem)))
  end
  flow.fs.remove(script.folder, { recursive = true })
  return kills, again
end

local numbers = {}
for i = 1, count do numbers[i] = i end
local kills, repeated = 0, 0
local ProveOp = flow.op("ProveOp", { needs = { item = "integer" }, run = function(ctx)
  local more, again = prove(ctx:get "item")
  kills, repeated = kills + more, repeated + again
end })
local run = flow.new("structures"):data { numbers = numbers }
  :add_grouped(ProveOp, { input = "numbers", as = "item", max_concurrent = 4 }):run()
if not run.ok then error(run.error) end
print(("%d structures, %d kills, %d effects repeated, from seed %d"):format(count, kills, repeated, seed))
