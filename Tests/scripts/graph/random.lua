-- Random graphs have the outcome of a run in topological order: each op once, after all its givers, with their data.
-- A seed in FLOWLUA_SEED replaces the first one, a number in FLOWLUA_GRAPHS how many there are.
local flow, check = require "flow", require "check"
local first = math.tointeger(tonumber(os.getenv "FLOWLUA_SEED")) or 1
local count = math.tointeger(tonumber(os.getenv "FLOWLUA_GRAPHS")) or 300

for seed = first, first + count - 1 do
  math.randomseed(seed)
  local random = math.random
  local size = random(2, 40)
  local options = { keep_going = random(2) == 1, max_concurrent = random(3) == 1 and random(1, 4) or nil }
  -- Node k may need what earlier ones give; they are added in any order.
  local nodes, outcome, started, ended = {}, {}, {}, {}
  local anyFails = false
  for k = 1, size do
    local node = { name = ("N%dOp"):format(k), needs = {}, after = {}, fails = random(25) == 1, off = random(15) == 1 }
    for other = 1, k - 1 do
      if random(size) <= 2 then node.needs[other] = random(4) == 1 and "integer?" or "integer" end
      if random(size * 4) == 1 then node.after[#node.after + 1] = ("N%dOp"):format(other) end
    end
    node.kind = random(6) == 1 and "flow" or random(6) == 1 and "group" or "op"
    nodes[k] = node
  end
  -- The model: every node in order.
  local value, state = {}, {}
  for k, node in ipairs(nodes) do
    local sum, result = k, "ok"
    for other, kind in pairs(node.needs) do
      if state[other] == "failed" or (state[other] == "skipped" and kind == "integer") then
        if result ~= "failed" then result = state[other] end
      end
      sum = sum + (value[other] or 0)
    end
    for _, name in ipairs(node.after) do
      local other = math.tointeger(tonumber(name:match "%d+"))
      if state[other] == "failed" and result ~= "failed" then result = "failed" end
    end
    node.blocked = result ~= "ok"
    if result == "ok" and node.off then result = "skipped" end
    if result == "ok" and node.fails then result = "failed" anyFails = true node.raises = true end
    state[k] = result
    if result == "ok" then value[k] = sum end
  end
  local function body(k, node)
    return function(ctx)
      started[k] = (started[k] or 0) + 1
      for other, kind in pairs(node.needs) do
        if kind == "integer" then assert(ended[other], "a giver hasn't ended") end
      end
      local flow = require "flow"
      if node.time > 0 then flow.sleep(node.time) end
      if node.fails then error("no", 0) end
      local sum = k
      for other, kind in pairs(node.needs) do sum = sum + (ctx:get("k" .. other, kind) or 0) end
      ctx:set("k" .. k, sum)
      ended[k] = true
    end
  end
  local graph = flow.graph("random", options):data { item = { 1 } }
  local order = {}
  for k = 1, size do table.insert(order, random(#order + 1), k) end
  for _, k in ipairs(order) do
    local node = nodes[k]
    node.time = random(0, 3)
    local needs = {}
    for other, kind in pairs(node.needs) do needs["k" .. other] = kind end
    local place = { after = #node.after > 0 and node.after or nil }
    if node.off then place.when = random(2) == 1 and function() return false end or function() flow.sleep(1) return nil end end
    if node.kind == "group" then
      needs.i = "integer"
      local op = flow.op(node.name, { needs = needs, gives = { ["g" .. k] = "integer" }, primary_input = "i", run = function(ctx)
        local inner = body(k, node)
        local set
        inner(setmetatable({ set = function(_, _, v) set = v end, get = function(_, ...) return ctx:get(...) end }, {}))
        ctx:set("g" .. k, set)
      end })
      graph:add_grouped(op, { input = "item", output = "list" .. k }, place)
      graph:add(flow.op(("G%dOp"):format(k), { needs = { ["list" .. k] = "integer[]" }, gives = { ["k" .. k] = "integer" },
        run = function(ctx) ctx:set("k" .. k, ctx:get("list" .. k)[1]) end }))
    else
      local op = flow.op(node.name, { needs = needs, gives = { ["k" .. k] = "integer" }, run = body(k, node) })
      if node.kind == "flow" then
        op = flow.new(node.name):add(op:with { name = ("I%dOp"):format(k) })
      end
      graph:add(op, place)
    end
  end
  check.same(graph:check(), {})
  local run = graph:run()
  local what = ("seed %d: "):format(seed)
  check.equal(run.state, anyFails and "failed" or "succeeded", what .. "state")
  for k, node in ipairs(nodes) do
    local executed = started[k] or 0
    assert(executed <= 1, what .. node.name .. " was executed again")
    if not anyFails or options.keep_going then
      check.equal(executed, (node.blocked or node.off) and 0 or 1, what .. node.name)
      check.equal(run.data["k" .. k], value[k], what .. node.name)
    elseif run.data["k" .. k] then
      check.equal(run.data["k" .. k], value[k], what .. node.name)
    end
  end
end
