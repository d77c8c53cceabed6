-- Ops of workers write and read streams as those of the main thread do, on either side.
-- clock: real: the clock stands still while a worker executes
local flow, check = require "flow", require "check"

local function writer(thread, n, last)
  return flow.op("WriteOp", { thread = thread, gives = { rows = "stream<table>", wanted = "integer" }, run = function(ctx)
    local count = 0
    for i = 1, n do
      count = i
      if not ctx:emit("rows", { id = i, text = "row " .. i }) then break end
      if i == last then error("disk full", 0) end
    end
    ctx:set("wanted", count)
  end })
end
local function reader(thread, most, name)
  return flow.op(name or "ReadOp", { thread = thread, needs = { rows = "stream<table>" }, gives = { [name or "sum"] = "integer" },
    run = function(ctx)
      local sum, n = 0, 0
      for row in ctx:get "rows" do
        assert(row.text == "row " .. row.id)
        sum, n = sum + row.id, n + 1
        if n == most then break end
      end
      ctx:set(name or "sum", sum)
    end })
end

for _, sides in ipairs { { "worker", "main" }, { "main", "worker" }, { "worker", "worker" } } do
  for _, n in ipairs { 0, 1, 10, 300 } do
    local run = flow.graph("g"):add(writer(sides[1], n)):add(reader(sides[2])):run()
    check.same({ run.state, run.data.sum, run.data.wanted }, { "succeeded", n * (n + 1) // 2, n }, tostring(run.error))
  end
  -- The reader ends early, and the writer fails.
  local run = flow.graph("g"):add(writer(sides[1], 1000), { buffer = 2 }):add(reader(sides[2], 5)):run()
  check.same({ run.state, run.data.sum, run.data.wanted < 12 }, { "succeeded", 15, true }, run.data.wanted)
  run = flow.graph("g"):add(writer(sides[1], 1000, 50)):add(reader(sides[2])):run()
  check.same({ run.state, run.error.op, run.error.message }, { "failed", "WriteOp", "disk full" })
  -- Cancelled while both wait for each other.
  local stopped = flow.graph("g"):add(writer(sides[1], 1000000)):add(reader(sides[2])):start()
  flow.sleep(0.1)
  stopped:cancel "enough"
  stopped:wait()
  check.equal(stopped.state, "cancelled")
end
-- Several readers; a list instead of a stream; the list of all.
local run = flow.graph("g"):add(writer("worker", 100)):add(reader("worker", nil, "a")):add(reader("main", nil, "b"))
  :gives { rows = "table[]" }:run()
check.same({ run.data.a, run.data.b, #run.data.rows, run.data.rows[3].text }, { 5050, 5050, 100, "row 3" }, tostring(run.error))
run = flow.graph("g"):add(reader "worker"):run { rows = { { id = 1, text = "row 1" }, { id = 2, text = "row 2" } } }
check.equal(run.data.sum, 3, tostring(run.error))
-- A group whose items workers execute, over a stream of a worker.
run = flow.graph("g"):add(writer("worker", 40)):add_grouped(flow.op("LengthOp", {
  thread = "worker", needs = { row = "table" }, gives = { length = "integer" },
  run = function(ctx) ctx:set("length", #ctx:get("row").text) end,
}), { input = "rows", output = "lengths", max_concurrent = 4, as = "row" })
  :add(flow.op("SumOp", { thread = "worker", needs = { lengths = "stream<integer>" }, gives = { sum = "integer" }, run = function(ctx)
    local sum = 0
    for length in ctx:get "lengths" do sum = sum + length end
    ctx:set("sum", sum)
  end })):run()
check.equal(run.data.sum, 9 * 5 + 31 * 6, tostring(run.error))

-- Wrong use, with the place in the script.
local function fails(text, gives, body)
  local bad = flow.graph("g"):add(flow.op("BadOp", { thread = "worker", gives = gives, run = body })):add(reader "main")
    :gives { rows = "table[]" }:run()
  check.contains(tostring(bad.error and bad.error.message), text)
  check.contains(bad.error.message, "streams_in_workers.lua:")
end
fails("bad argument #2 to 'emit' (item #2 of <rows>: table expected, got integer)", { rows = "stream<table>" },
  function(ctx) ctx:emit("rows", { id = 1, text = "row 1" }) ctx:emit("rows", 5) end)
fails("bad use of 'emit' (<other> isn't a stream that [BadOp] gives: it gives as streams only <rows>)",
  { rows = "stream<table>" }, function(ctx) ctx:emit("other", {}) end)
fails("bad use of 'emit' (the item of <rows>", { rows = "stream<table>" }, function(ctx) ctx:emit("rows", { print }) end)

-- The slot of an op that waits for room goes to a reader that has waited for one, which then makes the room.
for _, thread in ipairs { "worker", "loop" } do
  local Write = flow.op("WriteOp", { gives = { rows = "stream<integer>" }, run = function(ctx)
    for i = 1, 20 do
      if i % 3 == 0 then flow.sleep(0) end
      ctx:emit("rows", i)
    end
  end })
  local Read = flow.op("ReadOp", { needs = { rows = "stream<integer>" }, gives = { sum = "integer" },
    thread = thread == "worker" and thread or nil, run = function(ctx)
      local sum = 0
      for row in ctx:get "rows" do sum = sum + row end
      ctx:set("sum", sum)
    end })
  local slots = flow.graph("g", { max_concurrent = 2 }):add(Write, { buffer = 1 }):add(Read)
    :add(flow.op("SleepOp", function() flow.sleep(1) end)):run()
  check.same({ slots.state, slots.data.sum }, { "succeeded", 210 }, thread .. ": " .. tostring(slots.error))
end
