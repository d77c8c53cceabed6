-- A machine is an op in flows, cases, groups and machines, with policies.
local flow, check = require "flow", require "check"
local forward, step = flow.forward, flow.step

local double = flow.machine {
  name = "double", start = "a", doc = "Doubles n.",
  step("a", { run = function(state) return { n = state.n * 2 } end, flow.next(forward "b") }),
  step("b", { run = function(state, ctx) ctx:log(ctx.name, ctx.index) return state end }),
}
check.equal(double.doc, "Doubles n.")

local run = flow.new("outer"):data { n = 4 }:add(double):run()
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
n: 4
T [double] WillStart
T [double] state: {n = 8}
T [double] a -> b
T [double] double nil
T [DataBucket] replace for n: 4 -> 8
T [double] DidFinish: successfully
T [DataBucket] end with:
n: 8
Flow isSuccess: true
======    Ending    ======
]])
check.same(run.result, { n = 8 })
check.same(flow.new("f"):data { n = 4 }:add(double):check(), {})

run = flow.new("grouped"):data { numbers = { 1, 2, 3 }, plan = "pro" }
  :case("plan", "pro")
  :add_grouped(double, { input = "numbers", output = "doubled", as = "n", collect = "n" })
  :run()
check.same(run.data.doubled, { 2, 4, 6 })
check.contains(run:summary(), "[double #2] a -> b", "[double #3] double #3 3")
check.lacks(run:summary(), "add for n")

-- In a machine: it gets the state as it is, and its result is the value that it has finished with.
local outer = flow.machine {
  name = "outer", start = "inner",
  step("inner", {
    run = flow.machine { name = "inner", start = "x", step("x", { run = function(state) return state .. "!" end }) },
    flow.next(forward "end"),
  }),
  step("end", { run = function(state) return state .. "?" end }),
}
run = outer:run "hello"
check.equal(run.result, "hello!?")
check.contains(run:summary(), "[inner] WillStart", "[inner] DidFinish: successfully", "[outer] inner -> end")

-- A flow as a step: the data of its run is the result.
local steps = flow.machine {
  name = "steps", start = "a",
  step("a", { run = flow.new("inner"):data { extra = 1 }:add(double), flow.next(forward "b") }),
  step("b", { run = function(state) return state.n + state.extra end }),
}
check.equal(steps:run { n = 5 }.result, 11)
check.contains(steps:run({ n = 5 }):summary(), "[inner] WillStart", "[inner] DidFinish: successfully")

-- Policies.
local count = 0
local flaky = flow.machine {
  name = "flaky", start = "a", retry = 3,
  step("a", { run = function(state)
    count = count + 1
    check.equal(state.begun, nil)
    if count < 3 then error("no", 0) end
    return { begun = true, attempts = count }
  end }),
}
check.equal(flaky:run({}).result.attempts, 3)
count = 0
run = flaky:with { name = "once", retry = 1 }:run {}
check.equal(run.name, "once")
check.equal(run.error.message, "no")
run = flow.new("f"):add(flow.machine { name = "never", start = "a", step("a", { run = function() flow.sleep(60) end }) },
  { timeout = 5 }):run()
check.equal(run.error.message, "timed out after 5s")

-- An error keeps its identity; `ctx:fail` ends the machine.
local thrown = setmetatable({}, { __tostring = function() return "thrown" end })
run = flow.machine { name = "m", start = "a", step("a", { run = function() error(thrown) end }) }:run()
check.equal(run.error.cause, thrown)
run = flow.machine { name = "m", start = "a", step("a", { run = function(_, ctx) ctx:fail("no", { code = 7 }) end,
  flow.next(forward "b") }), step("b", { run = function() error "reached" end }) }:run()
check.equal(run.error.code, 7)
check.equal(run.error.op, "m")

-- needs and gives, as of any op.
local declared = flow.machine { name = "declared", start = "a", needs = { n = "integer" }, gives = { m = "integer" },
  step("a", { run = function(state) return { m = state.n } end }) }
check.equal(declared:run({ n = 1 }).data.m, 1)
check.equal(declared:run({}).error.kind, "insufficient_input")
check.equal(flow.new("f"):add(declared):check { n = 1 }[1], nil)
check.equal(flow.new("f"):add(declared):check({})[1].severity, "error")

-- A state may be anything, and stays the same value.
local seen
local any = flow.machine { name = "any", start = "a", step("a", { run = function(state) seen = state end }) }
for _, value in ipairs { 1, 1.5, "x", true, false, print, {}, coroutine.create(print), io.stdout, 0 / 0 } do
  local result = any:run(value).result
  check.equal(seen, value)
  check.equal(result, value)
end
check.equal(any:run().result, nil)
check.equal(any:run(flow.secret "sesame").ok, true)
local long = ("\0\255x"):rep(1000)
check.equal(any:run(long).result, long)

-- finish with nothing, also when the state is a table.
run = flow.machine { name = "m", start = "a", reduce = function() return flow.finish() end,
  step("a", { run = function() end }) }:run { a = 1 }
check.equal(run.ok, true)
check.equal(run.result, nil)
check.same(run.data, { a = 1 })
