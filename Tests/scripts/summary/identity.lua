-- Each event carries the identity of its execution: id, parent, path, run, lane and when it was queued.
local flow, check = require "flow", require "check"

local LeafOp = flow.op("LeafOp", function(ctx) ctx:log("leaf") end)
local inner = flow.new("inner"):add(LeafOp):add(LeafOp)
local ShardOp = flow.op("ShardOp", { primary_input = "n", run = function() flow.sleep(1) end })
local tries = 0
local AgainOp = flow.op("AgainOp", { retry = { attempts = 2, delay = 0 }, run = function()
  tries = tries + 1
  if tries == 1 then error "again" end
end })
local OuterOp = flow.op("OuterOp", function()
  LeafOp:run()
  LeafOp:run()
end)
local CountOp = flow.op("CountOp", { primary_input = "n", thread = "worker", run = function() end })
local function make()
  tries = 0
  return flow.new("publish"):data { items = { 1, 2, 3 } }
    :add(inner):add(inner)
    :add_grouped(ShardOp, { input = "items", max_concurrent = 1 })
    :add_grouped(flow.new("each"):add(LeafOp), { input = "items", as = "n" })
    :add(AgainOp):add(OuterOp):add_grouped(CountOp, { input = "items" })
end
local run = make():run()
assert(run.ok, run.error)
local events = run:events()

local starts, finishes, by_id, paths = {}, {}, {}, {}
for _, event in ipairs(events) do
  check.equal(event.run, events[1].run)
  check.equal(math.type(event.id), "integer")
  if event.kind == "start" then
    check.equal(starts[event.id], nil, event.path)
    starts[event.id], by_id[event.id] = event, event
    paths[#paths + 1] = event.path
  elseif event.kind == "finish" then
    check.equal(finishes[event.id], nil, event.path)
    finishes[event.id] = event
  elseif event.kind ~= "group" then
    -- A line that an op logs belongs to it.
    check.equal(by_id[event.id].op, event.op)
    check.equal(by_id[event.id].path, event.path)
  else
    by_id[event.id] = event
  end
end
-- Start and finish pair by id, and ops of one name can be distinguished.
for id, start in pairs(starts) do
  check.equal(finishes[id].op, start.op)
  check.equal(finishes[id].path, start.path)
end
table.sort(paths)
check.equal(table.concat(paths, "\n"), [[
publish/AgainOp
publish/CountOp #1
publish/CountOp #2
publish/CountOp #3
publish/OuterOp
publish/OuterOp/LeafOp
publish/OuterOp/LeafOp
publish/ShardOp #1
publish/ShardOp #2
publish/ShardOp #3
publish/each #1
publish/each #1/LeafOp
publish/each #2
publish/each #2/LeafOp
publish/each #3
publish/each #3/LeafOp
publish/inner
publish/inner
publish/inner/LeafOp
publish/inner/LeafOp
publish/inner/LeafOp
publish/inner/LeafOp]])
-- Each parent leads to what encloses the op, up to the run, whose id is 0.
for _, event in pairs(starts) do
  local seen, at = 0, event
  while at.parent ~= 0 do
    at = by_id[at.parent]
    seen = seen + 1
    assert(at and seen < 5, event.path)
  end
  check.equal(event.path:match("^(.-)/"), "publish")
end
for _, event in ipairs(events) do
  if event.kind == "start" and event.path == "publish/OuterOp/LeafOp" then
    check.equal(by_id[event.parent].op, "OuterOp")
  end
  -- Items wait for their turn; a worker has a lane.
  if event.kind == "start" and event.op == "ShardOp" then
    check.equal(event.queued, 0.0)
    check.equal(event.time, event.index - 1.0)
  elseif event.kind == "start" and not event.index then
    check.equal(event.queued, nil)
  end
  check.equal(event.lane > 0, event.op == "CountOp" and event.kind ~= "group", event.path)
  check.equal(event.attempt, event.op == "AgainOp" and event.kind == "finish" and 2 or 1)
end
-- A run has an id of its own, here and in every other process.
local other = make():run():events()
assert(other[1].run ~= events[1].run and other[1].run:find "^%x+%-%d+$")
check.equal(other[1].id, events[1].id)

-- A flow that is tried again keeps its id; the ops in it have another one in each attempt.
local count = 0
local tried = flow.new("tried"):add(LeafOp):add(flow.op("FailOp", function()
  count = count + 1
  if count < 2 then error "no" end
end))
run = flow.new("top"):add(tried, { retry = { attempts = 2 } }):run()
assert(run.ok, run.error)
local ids = {}
for _, event in ipairs(run:events()) do
  if event.kind == "start" or event.kind == "finish" then
    ids[event.op] = ids[event.op] or {}
    ids[event.op][event.id] = true
  end
end
local function size(set) local n = 0 for _ in pairs(set) do n = n + 1 end return n end
check.equal(size(ids.tried), 1)
check.equal(size(ids.LeafOp), 2)
