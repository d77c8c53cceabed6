-- Random graphs, and what each of them has to do: a seed makes the same one again, in whichever process.
local flow = require "flow"
local graphs = {}

-- The sum of what a key has: an integer, a list of them, or nothing.
local function total(value)
  if type(value) ~= "table" then return value or 0 end
  local sum = 0
  for _, each in ipairs(value) do sum = sum + each end
  return sum
end

local function one_of(...) return (select(math.random(select("#", ...)), ...)) end
local function chance(n) return math.random(n) == 1 end

-- The description of a graph: nodes of which each needs only earlier ones, and the order in which they are added. One
-- that is `steady` fails never, takes next to no time, and has no streams, whose ops a kept run executes again.
function graphs.plan(seed, options)
  math.randomseed(seed)
  local random, steady = math.random, options and options.steady
  local size = random(2, options and options.size or 60)
  local plan = {
    seed = seed, nodes = {}, order = {}, by_name = {}, keep_going = not steady and random(2) == 1,
    max_concurrent = chance(3) and random(4) or nil,
    timeout = not steady and chance(10) and random(0, 12) / 2 + 0.25 or nil,
    cancel = not steady and chance(6) and random(0, 12) / 2 + 0.3 or nil,
    data = { items1 = {}, items2 = { 1 }, items3 = { 3, 1, 2, 4 }, few = { 5, 6 } },
  }
  for number = 1, size do
    local node = {
      number = number, name = ("N%dOp"):format(number), key = "k" .. number, needs = {}, after = {},
      kind = one_of("op", "op", "op", "op", "op", "worker", "group", "pipe", "flow", "graph", "writer", "reader"),
      pause = steady and 0 or random(0, 3), attempts = 1, flaky = 0,
    }
    local lists = {}
    for other = 1, number - 1 do
      local before = plan.nodes[other]
      if random(size) <= 2 then
        node.needs[other] = (before.is_list and "integer[]" or "integer") .. (chance(4) and "?" or "")
        before.is_listed = true
      elseif before.is_list then
        lists[#lists + 1] = other
      end
      if random(size * 4) == 1 then node.after[#node.after + 1] = other end
    end
    if steady and (node.kind == "writer" or node.kind == "reader") then node.kind = "op" end
    if #lists == 0 then node.kind = ({ pipe = "group", reader = "writer" })[node.kind] or node.kind end
    if #lists == 0 and steady and node.kind == "writer" then node.kind = "op" end
    node.is_group = node.kind == "group" or node.kind == "pipe"
    node.is_list = node.is_group or node.kind == "writer"
    if node.kind == "pipe" or node.kind == "reader" then node.pipe = lists[random(#lists)] end
    -- Of streams nothing stays, unless somebody needs the list.
    node.is_stream = node.kind == "writer" or node.is_group and node.pipe and plan.nodes[node.pipe].is_stream
    plan.has_streams = plan.has_streams or node.is_stream or node.kind == "reader"
    if node.kind == "writer" then node.count, node.buffer = random(0, 8), random(3) end
    if node.kind == "writer" or node.kind == "reader" then node.in_worker = chance(8) end
    if node.is_group then
      node.input = node.pipe and "k" .. node.pipe or one_of("items1", "items2", "items3", "few")
      node.width = random(4)
      node.passes_over = not steady and chance(3)
      node.absent = node.passes_over and chance(2) and -1 or nil
      node.item = "i" .. number
      node.in_worker = chance(8)
    end
    if chance(5) then
      node.attempts = random(2, 3)
      if chance(2) then node.flaky = random(node.attempts) end
      node.delay = random(0, 2) / 4
      if steady then node.flaky, node.delay = math.min(node.flaky, node.attempts - 1), 0 end
      if node.is_group or steady and node.kind ~= "op" then node.flaky = 0 end
    end
    if not steady then
      if chance(25) then
        node.fails = node.kind == "op" and one_of("raise", "fail", "missing", "type")
          or node.kind == "writer" and one_of("raise", "late") or "raise"
        node.passes_over, node.absent = false, nil
      end
      if (node.kind == "op" or node.kind == "flow" or node.kind == "graph") and chance(10) then
        node.timeout = node.pause * (node.kind == "op" and 1 or 2) + (chance(4) and node.pause > 0 and -0.5 or 0.5)
      end
      node.undoes = node.kind == "op" and chance(3)
    end
    if chance(8) then
      node.when = steady and one_of("true", "false", "even") or one_of("true", "false", "slow", "even", "error")
    end
    plan.nodes[number] = node
    plan.by_name[node.name] = node
    table.insert(plan.order, random(#plan.order + 1), number)
  end
  graphs.solve(plan)
  return plan
end

-- The end of each node, one after another in the order of their numbers: `state` (ok, failed, skipped), `value`, `raises` for
-- one that fails itself, `blocked` for one that others keep from being executed, `may_begin` and `may_raise` for one that takes
-- items of such another meanwhile.
function graphs.solve(plan)
  for number, node in ipairs(plan.nodes) do
    local result, sum = "ok", 0
    local function follow(other, is_needed)
      local before = plan.nodes[other]
      if before.state == "failed" then
        result = "failed"
      elseif is_needed and before.state == "skipped" and result == "ok" then
        result = "skipped"
      end
      return before
    end
    for other, kind in pairs(node.needs) do
      sum = sum + total(follow(other, not kind:find "%?").value)
    end
    for _, other in ipairs(node.after) do follow(other) end
    if node.pipe then
      local before = follow(node.pipe, true)
      -- It begins before that one has failed, through any number of groups.
      node.may_begin = before.state == "failed" and (not before.blocked or before.may_begin) and not node.when
    end
    node.blocked = result ~= "ok"
    node.sum = sum
    if result == "ok" then
      if node.when == "false" or node.when == "slow" or (node.when == "even" and sum % 2 == 1) then
        result = "skipped"
      elseif node.when == "error" then
        result = "failed"
      end
    end
    node.executes = result == "ok"
    if result == "ok" and node.is_group then
      local list = {}
      node.items = node.pipe and plan.nodes[node.pipe].value or plan.data[node.input]
      for _, item in ipairs(node.items) do
        if node.passes_over and item % 3 == 1 then
          list[#list + 1] = node.absent
        else
          list[#list + 1] = item * 2 + number + sum
        end
      end
      node.value = list
      if node.fails and #node.items > 0 then result = "failed" end
    elseif result == "ok" then
      node.value = number + sum
      if node.kind == "reader" then node.value = node.value + total(plan.nodes[node.pipe].value) end
      if node.kind == "writer" then
        local list = {}
        for i = 1, node.count do list[i] = number + sum + i end
        node.value = list
      end
      if node.kind == "flow" or node.kind == "graph" then node.value = 2 * node.value + 3 end
      if node.fails or node.flaky >= node.attempts or (node.timeout or 1000) % 1 == 0.5 and node.timeout < node.pause * 2
        and node.timeout < node.pause * (node.kind == "op" and 1 or 2)
      then
        result = "failed"
      end
    end
    node.raises = result == "failed" and not node.blocked
    -- It may fail itself before those that keep it from its end have failed.
    node.may_raise = node.may_begin and (node.fails or node.flaky >= node.attempts)
    node.state = result
    if result ~= "ok" then node.value = nil end
    plan.fails = plan.fails or node.raises
  end
end

local function needs_of(node)
  local needs = {}
  for other, kind in pairs(node.needs) do needs["k" .. other] = kind end
  return needs
end

-- The function of an op: it adds up what it needs. Workers get copies of all that it refers to.
local function body(node, needs, out, add, note)
  local number, pause, flaky, fails = node.number, node.pause, node.flaky, node.fails
  return function(ctx)
    if note then note(ctx) end
    if pause > 0 then require("flow").sleep(pause) end
    if ctx.attempt <= flaky then error("not yet", 0) end
    if fails == "raise" then error("no", 0) end
    if fails == "fail" then ctx:fail("no", { code = number }) end
    if fails == "missing" then return end
    local sum = add
    for key, kind in pairs(needs) do sum = sum + total(ctx:get(key, kind)) end
    ctx:set(out, fails == "type" and "text" or sum)
  end
end

-- The function of an op that writes a stream.
local function writer_body(node, needs, note)
  local number, pause, flaky, fails, count, key = node.number, node.pause, node.flaky, node.fails, node.count, node.key
  return function(ctx)
    if note then note(ctx) end
    if pause > 0 then require("flow").sleep(pause) end
    if ctx.attempt <= flaky then error("not yet", 0) end
    if fails == "raise" then error("no", 0) end
    local sum = number
    for each, kind in pairs(needs) do sum = sum + total(ctx:get(each, kind)) end
    for i = 1, count do
      if fails == "late" and i > count // 2 then break end
      if i % 3 == 0 then require("flow").sleep(pause / 2) end
      ctx:emit(key, sum + i)
    end
    if fails == "late" then error("no", 0) end
  end
end

-- The function of an op that reads one, and adds it to what it needs.
local function reader_body(node, needs, note)
  local number, pause, flaky, fails, key, input = node.number, node.pause, node.flaky, node.fails, node.key, "k" .. node.pipe
  return function(ctx)
    if note then note(ctx) end
    if ctx.attempt <= flaky then error("not yet", 0) end
    local sum = number
    for each, kind in pairs(needs) do sum = sum + total(ctx:get(each, kind)) end
    for n in ctx:get(input) do
      sum = sum + n
      if pause > 0 then require("flow").sleep(pause / 2) end
    end
    if fails then error("no", 0) end
    ctx:set(key, sum)
  end
end

local function item_body(node, needs, note)
  local number, pause, fails, passes_over, item, out =
    node.number, node.pause, node.fails, node.passes_over, node.item, "o" .. node.number
  return function(ctx)
    if note then note(ctx) end
    local n = ctx:get(item)
    if pause > 0 then require("flow").sleep((n * 7 + pause) % 4 * pause / 2) end
    if fails then error("no", 0) end
    if passes_over and n % 3 == 1 then error("a third", 0) end
    local sum = n * 2 + number
    for key, kind in pairs(needs) do sum = sum + total(ctx:get(key, kind)) end
    ctx:set(out, sum)
  end
end

-- x needs what the node needs; y and z need x, and the key of the node needs both.
local function inner(node, needs, note)
  local k, x, y, z = node.number, "x" .. node.number, "y" .. node.number, "z" .. node.number
  local function op(letter, wanted, out, add, pause)
    local made = { number = k, pause = pause, fails = letter == "A" and node.fails, flaky = 0 }
    return flow.op(("I%d%sOp"):format(k, letter), {
      needs = wanted, gives = { [out] = "integer" }, run = body(made, wanted, out, add, note) })
  end
  local A = op("A", needs, x, k, node.pause)
  -- In each attempt of the flow the op begins with its first one.
  local tries = 0
  if node.flaky > 0 then
    A = flow.wrap(A, function(_, run)
      tries = tries + 1
      run()
      if tries <= node.flaky then error("not yet", 0) end
    end)
  end
  local B = op("B", { [x] = "integer" }, y, 1, node.pause)
  local C = op("C", { [x] = "integer" }, z, 2, 0)
  local D = op("D", { [y] = "integer", [z] = "integer" }, node.key, 0, 0)
  if node.kind == "flow" then return flow.new(node.name):add(A):add_parallel(B, C):add(D) end
  return flow.graph(node.name):add(D):add(C):add(B):add(A)
end

-- The graph of a plan. `note(ctx)` is called first in each function; `undone(name)` when an op is undone.
function graphs.build(plan, note, undone)
  local graph = flow.graph("random", { keep_going = plan.keep_going, max_concurrent = plan.max_concurrent })
  for _, number in ipairs(plan.order) do
    local node = plan.nodes[number]
    local needs, place = needs_of(node), {}
    if #node.after > 0 then
      place.after = {}
      for i, other in ipairs(node.after) do place.after[i] = plan.nodes[other].name end
    end
    local when, sum = node.when, node.sum
    if when then
      place.when = function(data)
        if when == "slow" then flow.sleep(1) return nil end
        if when == "error" then error("unknown", 0) end
        local found = 0
        for key in pairs(needs) do found = found + total(data[key]) end
        if found ~= sum then error(("[%s] is asked with %d, not with %d"):format(node.name, found, sum), 0) end
        return when == "true" or when == "even" and found % 2 == 0
      end
    end
    local retry = node.attempts > 1 and { attempts = node.attempts, delay = node.delay } or nil
    if node.kind == "writer" then
      place.buffer = node.buffer
      graph:add(flow.op(node.name, {
        needs = needs, gives = { [node.key] = "stream<integer>" }, retry = retry,
        thread = node.in_worker and "worker" or nil, run = writer_body(node, needs, note),
      }), place)
    elseif node.kind == "reader" then
      local wanted = { ["k" .. node.pipe] = "stream<integer>" }
      for key, kind in pairs(needs) do wanted[key] = kind end
      graph:add(flow.op(node.name, {
        needs = wanted, gives = { [node.key] = "integer" }, retry = retry,
        thread = node.in_worker and "worker" or nil, run = reader_body(node, needs, note),
      }), place)
    elseif node.is_group then
      local wanted = { [node.item] = "integer" }
      for key, kind in pairs(needs) do wanted[key] = kind end
      local Op = flow.op(node.name, {
        needs = wanted, gives = { ["o" .. number] = "integer" }, primary_input = node.item, retry = retry,
        thread = node.in_worker and "worker" or nil, run = item_body(node, needs, note),
      })
      graph:add_grouped(Op, {
        input = node.input, output = node.key, allow_empty = true, allow_failure = node.passes_over or nil,
        absent = node.absent, max_concurrent = node.width,
      }, place)
    elseif node.kind == "flow" or node.kind == "graph" then
      place.retry, place.timeout = retry, node.timeout
      graph:add(inner(node, needs, note), place)
    else
      local name = node.name
      graph:add(flow.op(name, {
        needs = needs, gives = { [node.key] = "integer" }, retry = retry, timeout = node.timeout,
        thread = node.kind == "worker" and "worker" or nil, run = body(node, needs, node.key, number, note),
        undo = node.undoes and undone and function() undone(name) end or nil,
      }), place)
    end
  end
  return plan.timeout and graph:with { timeout = plan.timeout } or graph
end

return graphs
