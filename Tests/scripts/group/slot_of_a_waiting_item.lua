-- An item that waits for its next attempt gives its slot to another item, and comes before new items.
local flow, check = require "flow", require "check"

-- Runs a group of numbers, of which each fails at its first attempts, as often as `failing` says.
-- Returns the run, which item began which attempt when, and the most items that executed at once.
local function run(options)
  local began, trace, tries, now, most = flow.now(), {}, {}, 0, 0
  local op = flow.op("TryOp", {
    needs = { n = "integer" }, retry = options.retry, thread = options.thread,
    run = options.run or function(ctx)
      local n = ctx:get "n"
      tries[n] = (tries[n] or 0) + 1
      trace[#trace + 1] = ("%g: %d.%d"):format(flow.now() - began, n, tries[n])
      now = now + 1
      most = math.max(most, now)
      local done <close> = setmetatable({}, { __close = function() now = now - 1 end })
      flow.sleep(1)
      if tries[n] <= (options.failing[n] or 0) then error("again", 0) end
      assert(done)
    end,
  })
  local items = {}
  for i = 1, options.count do items[i] = i end
  if options.around then op = options.around(op) end
  local settled = flow.new("group"):add_grouped(op, {
    input = "items", max_concurrent = options.limit or 1, hold_slot = options.hold_slot,
  }):run { items = items }
  return settled, table.concat(trace, ", "), most
end
local retry = { attempts = 9, delay = 10 }

-- One slot: the others execute during the delay, and the item is next when it is over.
local settled, trace, most = run { count = 3, failing = { 1 }, retry = retry }
assert(settled.ok, settled.error)
check.equal(trace, "0: 1.1, 1: 2.1, 2: 3.1, 11: 1.2")
check.equal(most, 1)
-- The delay is over while no slot is free: the item waits for one, then comes before new items.
settled, trace, most = run { count = 5, failing = { 1 }, retry = { attempts = 2, delay = 1.5 } }
assert(settled.ok, settled.error)
check.equal(trace, "0: 1.1, 1: 2.1, 2: 3.1, 3: 1.2, 4: 4.1, 5: 5.1")
check.equal(most, 1)
-- Several wait: the one whose delay is over first is first.
settled, trace, most = run {
  count = 5, failing = { 1, 1, 1 }, limit = 2, retry = { attempts = 2, delay = 1.5 },
}
assert(settled.ok, settled.error)
check.equal(trace, "0: 1.1, 0: 2.1, 1: 3.1, 1: 4.1, 2: 5.1, 2.5: 1.2, 3: 2.2, 3.5: 3.2")
check.equal(most, 2)
-- Kept with hold_slot, and where there is no delay.
settled, trace, most = run { count = 3, failing = { 1 }, retry = retry, hold_slot = true }
assert(settled.ok, settled.error)
check.equal(trace, "0: 1.1, 11: 1.2, 12: 2.1, 13: 3.1")
settled, trace = run { count = 3, failing = { 2 }, retry = 9 }
assert(settled.ok, settled.error)
check.equal(trace, "0: 1.1, 1: 1.2, 2: 1.3, 3: 2.1, 4: 3.1")

-- The limit holds whatever items do; nothing is lost, and outputs of all are there.
local failing = {}
for i = 1, 200 do failing[i] = (i * 7) % 4 end
for _, limit in ipairs { 1, 3, 50, 1000 } do
  settled, trace, most = run {
    count = 200, failing = failing, limit = limit, retry = { attempts = 9, delay = 0.7, jitter = 0.5 },
  }
  assert(settled.ok, settled.error)
  check.equal(most, math.min(limit, 200))
  local attempts = 0
  for _ in trace:gmatch "[^,]+" do attempts = attempts + 1 end
  check.equal(attempts, 200 + 300)
end

-- In workers the op has its own thread, but the same slots: another item executes meanwhile.
settled = run {
  count = 3, thread = "worker", retry = { attempts = 2, delay = 3600 },
  run = function(ctx)
    if ctx:get "n" == 1 and ctx.attempt == 1 then error("again", 0) end
    ctx:log "here"
  end,
}
assert(settled.ok, settled.error)
local order = {}
for _, event in ipairs(settled:events()) do
  if event.kind == "start" or event.kind == "retry" or event.kind == "finish" then
    order[#order + 1] = event.kind .. event.index
  end
end
check.equal(table.concat(order, " "), "start1 retry1 start2 finish2 start3 finish3 finish1")

-- Flows as items: only their own attempts count; an op within keeps the slot of its item.
settled, trace = run { count = 2, failing = { 1 }, around = function(op)
  return flow.new("item"):add(op):needs { n = "integer" }:primary("n"):with { retry = retry }
end }
assert(settled.ok, settled.error)
check.equal(trace, "0: 1.1, 1: 2.1, 11: 1.2")
settled, trace = run { count = 2, failing = { 1 }, retry = retry, around = function(op)
  return flow.new("item"):add(op):needs { n = "integer" }:primary("n")
end }
assert(settled.ok, settled.error)
check.equal(trace, "0: 1.1, 11: 1.2, 12: 2.1")

-- The summary has the same lines as without a group: start, Retry, finish of each item.
settled = run { count = 2, failing = { 1 }, retry = retry }
order = {}
for line in settled:summary():gmatch "%[TryOp[^\n]+" do order[#order + 1] = line end
check.same(order, {
  "[TryOp #1] WillStart", "[TryOp #1] Retry 2/9 in 10s: again",
  "[TryOp #2] WillStart", "[TryOp #2] DidFinish: successfully",
  "[TryOp #1] DidFinish: successfully",
})
