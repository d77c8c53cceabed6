-- Random graphs have the outcome of a run in topological order: each op once, after all its givers, with their data.
-- FLOWLUA_GRAPHS says how many there are, and FLOWLUA_SEED which is the first one: `FLOWLUA_GRAPHS=10000` takes a minute.
local check, flow, graphs = require "check", require "flow", require "graphs"
local first = math.tointeger(tonumber(os.getenv "FLOWLUA_SEED")) or 1
local count = math.tointeger(tonumber(os.getenv "FLOWLUA_GRAPHS")) or 1000

-- Whether the run has ended by itself, so that all that can be executed was.
local function is_whole(plan, run)
  if run.state == "cancelled" then return false end
  if run.error and run.error.op == "random" then return false end
  return plan.keep_going or not plan.fails
end

-- Follows the events: the order of starts and ends, and how many execute at a time.
local function follow(plan, run)
  local seen = { starts = {}, ended = {}, skips = {}, finished = {} }
  local running, failed = 0, nil
  local function before(node, other)
    if not seen.ended[other] then
      error(("[%s] starts before [%s] has ended"):format(node.name, plan.nodes[other].name), 0)
    end
  end
  local function starts(node, event)
    local key = event.index or 0
    seen.starts[node] = seen.starts[node] or {}
    if seen.starts[node][key] then error(("[%s] starts again"):format(event.path), 0) end
    seen.starts[node][key] = true
    for other in pairs(node.needs) do before(node, other) end
    for _, other in ipairs(node.after) do before(node, other) end
    if node.when and node.pipe then before(node, node.pipe) end
    -- Items that a worker has got already start there; those of other groups may start in the same moment.
    if failed and not node.in_worker and (not node.is_group or event.time > failed.time) then
      error(("[%s] starts after [%s] has failed"):format(event.path, failed.path), 0)
    end
    running = running + 1
    -- An item that waits for its next attempt, or an op that waits for a stream, counts for none.
    if plan.max_concurrent and running > plan.max_concurrent and not plan.waits then
      error(("%d execute at a time"):format(running), 0)
    end
  end
  for _, event in ipairs(run:events()) do
    local node = plan.by_name[event.op]
    if not node then goto continue end
    if event.kind == "start" then
      starts(node, event)
    elseif event.kind == "finish" then
      running = running - 1
      local succeeded = event.message == "successfully"
      if not node.is_group then seen.ended[node.number] = succeeded end
      if succeeded and node.undoes then seen.finished[node.name] = event.time end
      -- A group fails when its other items have ended.
      if not succeeded and not node.is_group and not plan.keep_going then failed = event end
    elseif event.kind == "group" then
      if event.message:find "^all finished" then seen.ended[node.number] = true end
    elseif event.kind == "log" then
      seen.skips[node] = event.message:match "^Skipped: (.*)"
      seen.ended[node.number] = true
    end
    ::continue::
  end
  check.equal(running, 0, "executing at the end")
  return seen
end

-- Why a node was skipped names what it lacks.
local function check_skip(plan, node, reason)
  if not reason then error(("[%s] doesn't say why it was skipped"):format(node.name), 0) end
  local found = 0
  for key, name in reason:gmatch "<(k%d+)>, which %[(N%d+Op)%] would give" do
    found = found + 1
    local giver = plan.by_name[name]
    check.equal(giver.key, key)
    check.equal(giver.state == "ok", false, reason)
  end
  for name in reason:gmatch "comes after %[(N%d+Op)%]" do
    found = found + 1
    check.equal(plan.by_name[name].state, "failed", reason)
  end
  if found == 0 then error(reason, 0) end
end

-- The errors are those of all that has failed by itself, each once.
local function check_errors(plan, run)
  local named = {}
  for _, failure in ipairs { run.error, table.unpack(run.error.others or {}) } do
    local node = plan.nodes[math.tointeger(failure.op:match "%d+")]
    assert(node and (node.raises or node.may_raise), tostring(failure))
    assert(not named[node], "twice: " .. tostring(failure))
    named[node] = true
  end
  for _, node in ipairs(plan.nodes) do
    if plan.keep_going and node.raises then assert(named[node], "no error of " .. node.name) end
  end
end

local function prove(plan)
  for _, node in ipairs(plan.nodes) do plan.waits = plan.waits or plan.has_streams or node.attempts > 1 end
  local undone, last = {}, nil
  local graph = graphs.build(plan, nil, function(name) undone[#undone + 1] = name end)
  graph:add_finally(flow.op("LastOp", function(ctx)
    last = {}
    for _, node in ipairs(plan.nodes) do last[node.key] = ctx:get(node.key, "any?") end
  end))
  check.same(graph:check(plan.data), {})
  local run = graph:start(plan.data)
  if plan.cancel then
    flow.sleep(plan.cancel)
    run:cancel "enough"
  end
  run:wait()

  local seen, whole = follow(plan, run), is_whole(plan, run)
  if whole then
    check.equal(run.state, plan.fails and "failed" or "succeeded", "state: " .. tostring(run.error))
  end
  if run.state == "failed" and run.error.op ~= "random" then check_errors(plan, run) end
  if run.state == "failed" and not plan.keep_going then check.equal(run.error.others, nil, "others") end
  for _, node in ipairs(plan.nodes) do
    local starts, value = 0, run.data[node.key]
    for _ in pairs(seen.starts[node] or {}) do starts = starts + 1 end
    if not node.executes and not node.may_begin then check.equal(starts, 0, node.name) end
    if whole and node.executes then
      local wanted = node.is_group and #node.items or 1
      if not (node.is_group and node.raises) then check.equal(starts, wanted, node.name) end
    end
    if whole and node.blocked and not node.may_begin then check_skip(plan, node, seen.skips[node]) end
    -- A failed op leaves its value of a wrong type in the data; ops of flows do, too.
    if node.fails == "type" and value == "text" then value = nil end
    if (whole and not (node.is_stream and not node.is_listed)) or value then check.same(value, node.value, node.name) end
    check.same(last and last[node.key], run.data[node.key], "the final step's " .. node.key)
  end
  -- The ops that succeeded are undone when the graph doesn't succeed, the last one first.
  for i, name in ipairs(undone) do
    local time = seen.finished[name]
    assert(run.state ~= "succeeded" and time, name .. " is undone")
    assert(i == 1 or time <= undone.last, name .. " is undone too late")
    undone.last, seen.finished[name] = time, nil
  end
  if run.state ~= "succeeded" then check.equal(next(seen.finished), nil, "not undone") end
end

for seed = first, first + count - 1 do
  local plan = graphs.plan(seed)
  local ok, problem = pcall(prove, plan)
  if not ok then error(("seed %d: %s"):format(seed, tostring(problem)), 0) end
end
print(("%d graphs, from seed %d"):format(count, first))
