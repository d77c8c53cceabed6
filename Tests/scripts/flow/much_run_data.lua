-- Much run.data of a run that has ended is read key by key, and is used as any other.
local flow, check = require "flow", require "check"
local keys = 2000
local SetOp = flow.op("SetOp", function(ctx) ctx:set("list", { 1, 2 }) ctx:set("none", nil) ctx:set("gone", 1) ctx:set("gone", nil) end)
local function given()
  local data = {}
  for i = 1, keys do data["k" .. i] = i end
  return data
end
local all = given()
all.list = { 1, 2 }
local run = SetOp:run(given())
assert(run.ok, run.error)

-- One key costs no table of all of them.
collectgarbage()
collectgarbage "stop"
local before = collectgarbage "count"
for i = 1, 100 do
  check.equal(run.data["k" .. i], i)
  check.equal(run.data.absent, nil)
  check.equal(run.data.gone, nil)
end
local used = collectgarbage "count" - before
collectgarbage "restart"
assert(used < 200, used .. " KiB for 100 keys")

-- Any way to want all of it gives all of it.
local function fresh() return run.data end
local walked = {}
for key, value in pairs(fresh()) do walked[key] = value end
check.same(walked, all)
check.equal(#fresh(), 0)
check.equal(fresh()[1], nil)
check.equal(fresh()[true], nil)
assert(next(fresh()) ~= nil, "it isn't empty")
check.same(flow.json.decode(flow.json.encode(fresh())), all)
local again = SetOp:run(fresh())
walked = {}
for key, value in pairs(again.data) do walked[key] = value end
check.same(walked, all)
local nested = flow.op("NestOp", function(ctx) ctx:set("outer", { fresh() }) end):run()
check.equal(nested.data.outer[1].k7, 7)
check.contains(nested:summary(), "add for outer: {{k1 = 1, k10 = 10, k100 = 100, ")
local EchoOp = flow.op("EchoOp", {
  needs = { value = "table" }, gives = { back = "table" }, thread = "worker",
  run = function(ctx) ctx:set("back", ctx:get "value") end,
})
check.same(EchoOp:run({ value = fresh() }).data.back, all)
local machine = flow.machine {
  name = "m", start = "one",
  flow.step("one", { run = function(state) state.k1 = state.k1 + 1 return state end }),
}
check.equal(machine:run(fresh()).result.k1, 2)

-- Many keys are read one after another, and after that all.
local data = fresh()
for i = 1, keys do check.equal(data["k" .. i], i) end
check.equal(data.absent, nil)
local count = 0
for _ in pairs(data) do count = count + 1 end
check.equal(count, keys + 1)

-- It refuses to be changed, before and after, and its inner tables are those of the run.
check.usage(function() fresh().x = 2 end, "field 'x'", "run.data is a copy")
check.usage(function() data.k1 = 2 end, "field 'k1'", "run.data is a copy")
assert(rawequal(fresh().list, fresh().list))
assert(rawequal(fresh().list, data.list))
-- A copy of it with its content alone, and what is made of its parts, is somebody else's.
local key, source = next(fresh())
check.equal(rawget({ [key] = source }, "k1"), nil)
check.equal(setmetatable({ [key] = source }, { __index = function() return "own" end }).k1, "own")

-- The data of a pending run is what it had at that time.
local early
local PauseOp = flow.op("PauseOp", function(ctx)
  early = ctx.run.data
  ctx:set("k1", "later")
end)
local paused = PauseOp:run(given())
check.equal(early.k1, 1)
check.equal(paused.data.k1, "later")
