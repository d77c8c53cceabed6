-- A group over a stream executes its items as they come and gives a stream, in the order of its input or as items finish.
local flow, check = require "flow", require "check"
local ahead, taken = 0, 0
local function numbers(n, seconds)
  return flow.op("NumberOp", { gives = { ns = "stream<integer>" }, run = function(ctx)
    taken, ahead = 0, 0
    for i = 1, n do
      if seconds then flow.sleep(seconds) end
      if not ctx:emit("ns", i) then return end
      ahead = math.max(ahead, i - taken)
    end
  end })
end
local function square(seconds, options)
  options = options or {}
  options.needs, options.gives = { n = "integer" }, { square = "integer" }
  options.run = options.run or function(ctx)
    local n = ctx:get "n"
    taken = taken + 1
    if seconds then flow.sleep(type(seconds) == "function" and seconds(n) or seconds) end
    ctx:set("square", n * n)
  end
  return flow.op("SquareOp", options)
end
local Total = flow.op("TotalOp", { needs = { squares = "stream<integer>" }, gives = { total = "integer", order = "string" },
  run = function(ctx)
    local total, order = 0, {}
    for square in ctx:get "squares" do
      total = total + square
      if #order < 10 then order[#order + 1] = square end
    end
    ctx:set("total", total)
    ctx:set("order", table.concat(order, " "))
  end })
local each = { input = "ns", output = "squares", max_concurrent = 2 }

-- Any number of items; of the streams nothing stays.
for _, n in ipairs { 1, 10, 5000 } do
  local run = flow.graph("g"):add(Total):add_grouped(square(), each):add(numbers(n)):run()
  check.same({ run.state, run.data.total, run.data.ns, run.data.squares }, { "succeeded", n * (n + 1) * (2 * n + 1) // 6 },
    tostring(run.error))
end
-- An empty stream is an empty list.
check.equal(flow.graph("g"):add_grouped(square(), each):add(numbers(0)):run().error.kind, "insufficient_input")
check.equal(flow.graph("g"):add_grouped(square(), { input = "ns", output = "squares", allow_empty = true }):add(Total)
  :add(numbers(0)):run().data.total, 0)
-- The list of the results is made where somebody needs it, or the graph gives it.
local Count = flow.op("CountOp", { needs = { squares = "integer[]" }, gives = { n = "integer" },
  run = function(ctx) ctx:set("n", #ctx:get "squares") end })
local run = flow.graph("g"):add_grouped(square(), each):add(numbers(7)):add(Count):add(Total):run()
check.same({ run.data.n, run.data.squares, run.data.total }, { 7, { 1, 4, 9, 16, 25, 36, 49 }, 140 })
run = flow.graph("g"):gives { squares = "integer[]" }:add_grouped(square(), each):add(numbers(3)):run()
check.same(run.data.squares, { 1, 4, 9 })

-- In the order of the input, or as they finish.
local function slow(n) return n == 1 and 5 or 1 end
local function order(ordered)
  return flow.graph("g"):add(numbers(5)):add(Total)
    :add_grouped(square(slow), { input = "ns", output = "squares", max_concurrent = 2, ordered = ordered }):run()
end
check.same({ order(nil).data.order, order(true).data.order, order(false).data.order },
  { "1 4 9 16 25", "1 4 9 16 25", "4 9 16 25 1" })
-- At most `buffer` finished items wait for a slower earlier one.
local most, done = 0, 0
run = flow.graph("g"):add(numbers(50)):add(Total):add_grouped(square(nil, { run = function(ctx)
  local n = ctx:get "n"
  flow.sleep(n == 1 and 100 or 1)
  if n == 1 then most = done end
  done = done + 1
  ctx:set("square", n)
end }), { input = "ns", output = "squares", max_concurrent = 4 }, { buffer = 6 }):run()
check.same({ run.data.total, most }, { 1275, 6 })

-- Back-pressure through both: a slow reader at the end holds the writer at the beginning.
local Slow = flow.op("SlowOp", { needs = { squares = "stream<integer>" }, run = function(ctx)
  for _ in ctx:get "squares" do flow.sleep(1) end
end })
run = flow.graph("g"):add(numbers(100), { buffer = 2 }):add_grouped(square(), each, { buffer = 3 }):add(Slow):run()
check.equal(run.duration, 100.0)
check.equal(ahead <= 3, true, ahead)
-- The results of a group over a list are held back as well, and can be read as a stream.
taken = 0
local lead = 0
run = flow.graph("g"):add_grouped(square(), { input = "ns", output = "squares" }, { buffer = 4 })
  :add(flow.op("LeadOp", { needs = { squares = "stream<integer>" }, run = function(ctx)
    local n = 0
    for _ in ctx:get "squares" do
      n = n + 1
      lead = math.max(lead, taken - n)
      flow.sleep(1)
    end
  end })):run { ns = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } }
check.same({ #run.data.squares, run.duration, lead <= 5 }, { 16, 16.0, true }, lead)

-- Failures of items: passed over, a value in their place, or the end.
local Odd = square(nil, { run = function(ctx)
  if ctx:get "n" % 2 == 0 then error("even", 0) end
  ctx:set("square", ctx:get "n")
end })
local function failing(options)
  options.input, options.output = "ns", "squares"
  return flow.graph("g"):add_grouped(Odd, options):add(Total):add(numbers(5)):run()
end
check.equal(failing({ allow_failure = true }).data.order, "1 3 5")
check.equal(failing({ allow_failure = true, absent = 0 }).data.order, "1 0 3 0 5")
run = failing({ allow_failure = true, failures = "bad" })
check.same({ #run.data.bad, run.data.bad[2].index, run.data.bad[2].input, run.data.bad[2].error.message }, { 2, 4, 4, "even" })
check.equal(failing({}).error.message, "even")
-- The writer fails: so does the group, with the number of the item.
run = flow.graph("g", { keep_going = true }):add_grouped(square(), each):add(flow.op("NumberOp", {
  gives = { ns = "stream<integer>" }, run = function(ctx)
    ctx:emit("ns", 1)
    flow.sleep(1)
    error("gone", 0)
  end })):run()
check.same({ run.error.message, run.error.others }, { "gone" })
-- The group ends early, or the reader of its results: the writer learns that.
run = flow.graph("g"):add(numbers(1000)):add(Total)
  :add_grouped(square(), { input = "ns", output = "squares", stop_when = function(results) return #results >= 5 end }):run()
check.same({ run.state, run.data.total >= 55 }, { "succeeded", true }, tostring(run.error))
check.equal(taken < 20, true, taken)
-- Retries, conditions and limits of the graph.
local tries = 0
run = flow.graph("g", { max_concurrent = 1 }):add(numbers(20), { buffer = 2 }):add(Total)
  :add_grouped(square(nil, { retry = 2, run = function(ctx)
    tries = tries + 1
    if tries == 3 then error "again" end
    ctx:set("square", ctx:get "n")
  end }), each, { buffer = 2 }):run()
check.same({ run.data.total, tries }, { 210, 21 }, tostring(run.error))
run = flow.graph("g"):add(numbers(5)):add_grouped(square(), each, { when = function() return false end })
  :add(flow.op("EndOp", { needs = { squares = "stream<integer>" }, run = function() end })):run()
check.contains(run:summary(), "[EndOp] Skipped: needs <squares>, which [SquareOp] would give")
-- Three stages, in which items are tables, and their failures are alone.
local Row = flow.op("RowOp", { gives = { rows = "stream<{ id: integer, text: string }>" }, run = function(ctx)
  for i = 1, 30 do ctx:emit("rows", { id = i, text = ("x"):rep(i) }) end
end })
local Length = flow.op("LengthOp", { needs = { row = "table" }, gives = { length = "integer" },
  run = function(ctx) flow.sleep(0.1) ctx:set("length", #ctx:get("row").text) end })
run = flow.graph("g"):add(Row):add_grouped(Length, { input = "rows", output = "ns", as = "row" })
  :add_grouped(square(), each):add(Total):run()
check.equal(run.data.total, 9455)
-- Views.
local graph = flow.graph("g"):add(numbers(5)):add_grouped(square(), each):add(Total)
check.same(graph:check {}, {})
check.contains(graph:mermaid(), '==>|"squares"|')
