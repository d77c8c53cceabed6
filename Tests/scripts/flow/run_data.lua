-- run.data is a read-only copy that can be indexed, iterated and printed.
local flow, check = require "flow", require "check"
local SetOp = flow.op("SetOp", function(ctx) ctx:set("x", 1) ctx:set("list", { 1, 2 }) end)
local run = SetOp:run { name = "Ada" }
local data = run.data

check.usage(function() run.data.x = 2 end, "run_data.lua:7: ", "field 'x'", "run.data is a copy")
check.usage(function() run.data.fresh = 2 end, "field 'fresh'", "run.data is a copy")
check.usage(function() data.x = nil end, "run.data is a copy")
check.usage(function() data[1] = true end, "a key of type")
check.usage(function() run.result.x = 2 end, "run.data is a copy")
check.usage(function() run:await().x = 2 end, "run.data is a copy")
check.equal(data.x, 1)
check.equal(run.data.x, 1)

check.equal(type(data), "table")
check.equal(#data, 0)
check.equal(data.absent, nil)
local walked = {}
for key, value in pairs(data) do walked[key] = value end
check.same(walked, { x = 1, name = "Ada", list = { 1, 2 } })
assert(next(data) ~= nil, "it isn't empty")
assert(next(flow.op("NoOp", function() end):run().data) == nil, "it is empty")
assert(not pcall(setmetatable, data, {}))

-- As data of other runs, within other data, in lines, and as a state.
local again = SetOp:run(data)
check.equal(again.data.name, "Ada")
local nested = flow.op("NestOp", function(ctx) ctx:set("outer", { run.data }) end):run()
check.equal(nested.data.outer[1].name, "Ada")
check.contains(nested:summary(), "add for outer: {{list = {1, 2}, name = Ada, x = 1}}")
local EchoOp = flow.op("EchoOp", {
  needs = { value = "table" }, gives = { back = "table" }, thread = "worker",
  run = function(ctx)
    local value = ctx:get "value"
    value.more = true
    ctx:set("back", value)
  end,
})
local back = EchoOp:run { value = data }.data.back
check.same(back, { x = 1, name = "Ada", list = { 1, 2 }, more = true })
-- A machine's state is the machine's to change.
local machine = flow.machine {
  name = "m", start = "one",
  flow.step("one", { run = function(state) state.n = 1 return SetOp:start(state) end, flow.next(flow.forward "two") }),
  flow.step("two", { run = function(state) state.n = state.n + 1 return state end }),
}
local done = machine:run(data)
assert(done.ok, done.error)
check.equal(done.result.n, 2)
-- A copy with the metatable too is its own table.
local copy = {}
for key, value in pairs(data) do copy[key] = value end
copy.x = 5
check.equal(copy.x + run.data.x, 6)
-- Inner tables are those of the run.
assert(rawequal(run.data.list, run.data.list))
