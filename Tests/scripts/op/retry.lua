-- A failing op is retried by the policy of its class, of a copy or of its place.
local flow, check = require "flow", require "check"
local attempts
local function flaky(ctx)
  attempts[#attempts + 1] = ctx.attempt
  if ctx.attempt < 3 then error({ attempt = ctx.attempt }) end
  ctx:set("done", ctx.attempt)
end
local FlakyOp = flow.op("FlakyOp", flaky)

local function outcome(op, policy)
  attempts = {}
  local run = flow.new("f"):add(op, policy):run()
  return #attempts, run.ok and "ok" or run.error.cause.attempt, run
end
local function same(expected, count, result) check.same({ count, result }, expected) end
same({ 1, 1 }, outcome(FlakyOp))
same({ 3, "ok" }, outcome(flow.op("FlakyOp", { retry = 3, run = flaky })))
same({ 2, 2 }, outcome(FlakyOp:with { retry = 2 }))
same({ 3, "ok" }, outcome(FlakyOp, { retry = 9 }))
-- The place replaces what the class says.
same({ 1, 1 }, outcome(FlakyOp:with { retry = 3 }, { retry = 1 }))

local _, _, run = outcome(FlakyOp:with { retry = { attempts = 4, delay = 0.001, factor = 2 } })
local text = check.masked(run:summary())
local lines = {}
for line in text:gmatch("[^\n]+") do
  if line:find("FlakyOp", 1, true) then lines[#lines + 1] = line:gsub("table: 0x%x+", "TABLE") end
end
check.equal(#lines, 4)
check.contains(lines[1], "WillStart")
check.contains(lines[2], "[FlakyOp] Retry 2/4 in 0.001s: ")
check.contains(lines[3], "[FlakyOp] Retry 3/4 in 0.002s: ")
check.contains(lines[4], "DidFinish: successfully")

-- An op that another attempt can't mend isn't tried again.
local function once(options)
  attempts = {}
  options.retry = 5
  local made = flow.op("OnceOp", options):run { number = 5 }
  return #attempts .. " " .. made.error.kind
end
local function count() attempts[#attempts + 1] = 1 end
check.equal(once { needs = { absent = "any" }, run = count }, "0 insufficient_input")
check.equal(once { needs = { number = "string" }, run = count }, "0 mismatched_input")
check.equal(once { run = function(ctx) count() ctx:get("absent") end }, "1 insufficient_input")
check.equal(once { run = function(ctx) count() ctx:set() end }, "1 usage")
check.equal(once { gives = { x = "string" }, run = function(ctx) count() ctx:set("x", 1) end },
  "1 mismatched_output")
check.equal(once { gives = { x = "string" }, run = count }, "5 missing_output")

-- A ctx is its attempt's own.
local kept
local KeepOp = flow.op("KeepOp", { retry = 2, run = function(ctx)
  if kept then
    check.raises(function() kept:log("late") end, "has finished")
    return
  end
  kept = ctx
  error("once more")
end })
assert(KeepOp:run().ok)
