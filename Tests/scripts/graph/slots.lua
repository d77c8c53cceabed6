-- max_concurrent of a graph limits its ops and the items of its groups together.
local flow, check = require "flow", require "check"
local now, most, order = 0, 0, {}
local function op(name, needs, gives)
  return flow.op(name, { needs = needs, gives = gives, run = function(ctx)
    now = now + 1
    most = math.max(most, now)
    order[#order + 1] = ctx.name:match "%a+Op" .. (ctx.index or "")
    flow.sleep(1)
    now = now - 1
    for key in pairs(gives) do ctx:set(key, 1) end
  end })
end
local function run(limit, build)
  now, most, order = 0, 0, {}
  local graph = flow.graph("g", { max_concurrent = limit })
  build(graph)
  local done = graph:run { list = { 1, 2, 3, 4, 5, 6 } }
  check.equal(done.state, "succeeded", tostring(done.error))
  return done
end
local function build(graph)
  graph:add(op("AOp", {}, { a = "integer" }))
    :add_grouped(op("ItemOp", { n = "integer" }, { m = "integer" }), { input = "list", output = "ms", max_concurrent = 9 })
    :add_grouped(op("NextOp", { m = "integer" }, { k = "integer" }), { input = "ms", output = "ks", max_concurrent = 9, as = "m" })
    :add(op("BOp", { a = "integer" }, { b = "integer" }))
end
local done = run(2, build)
check.same({ most, #order, #done.data.ks, done.duration }, { 2, 14, 6, 7.0 })
done = run(1, build)
check.same({ most, #order, done.duration }, { 1, 14, 14.0 })
done = run(nil, build)
check.same({ #order, done.duration }, { 14, 2.0 })
-- A group that waits for room has not ended, also one with a rate, and one whose items fail.
done = run(1, function(graph)
  graph:add(op("AOp", {}, { a = "integer" }))
    :add_grouped(op("ItemOp", { n = "integer" }, { m = "integer" }), { input = "list", output = "ms", rate = 1, max_concurrent = 9 })
end)
check.same({ most, #done.data.ms, done.duration }, { 1, 6, 7.0 })
local failed = flow.graph("g", { max_concurrent = 2 })
  :add_grouped(flow.op("FailOp", { needs = { n = "integer" }, run = function(ctx) flow.sleep(1) ctx:fail "no" end }), { input = "list" })
  :add(op("AOp", {}, { a = "integer" })):run { list = { 1, 2, 3 } }
check.same({ failed.state, failed.error.message }, { "failed", "no" })
-- An item that waits for its next attempt gives its place back, and takes one again.
for _, limit in ipairs { 1, 2 } do
  local attempts = 0
  local flaky = flow.op("FlakyOp", { needs = { n = "integer" }, retry = { attempts = 3, delay = 0.5 }, run = function(ctx)
    attempts = attempts + 1
    flow.sleep(1)
    if ctx.attempt < 3 then ctx:fail "again" end
  end })
  done = flow.graph("g", { max_concurrent = limit }):add_grouped(flaky, { input = "list", max_concurrent = 9 })
    :add(op("AOp", {}, { a = "integer" })):run { list = { 1, 2, 3 } }
  check.same({ done.state, attempts }, { "succeeded", 9 })
end
-- Many groups share the places, whichever of them have items left.
for _, limit in ipairs { 1, 3 } do
  done = run(limit, function(graph)
    for k = 1, 20 do
      local name = string.char(64 + k) .. "Op"
      graph:add_grouped(op(name, { n = "integer" }, { m = "integer" }), { input = "list", max_concurrent = k % 3 + 1 })
    end
  end)
  check.same({ most, #order, done.duration }, { limit, 120, 120 / limit })
end
