-- flow.on_event calls a function with the events that its filter lets pass, in their order, and changes nothing.
-- expect-stderr: a function of flow.on_event has failed: Tests/scripts/view/on_event.lua:
local flow, check = require "flow", require "check"

local all, ends, several = {}, {}, {}
flow.on_event(function(event) all[#all + 1] = event end)
flow.on_event({ kind = "finish", op = "StepOp" }, function(event) ends[#ends + 1] = event end)
flow.on_event({ kind = { "log", "set" }, op = { "StepOp", "OtherOp" }, attempt = 1 }, function(event)
  several[#several + 1] = event.message or event.key
end)
local StepOp = flow.op("StepOp", function(ctx)
  ctx:log "first"
  flow.sleep(1)
  ctx:set("n", 1)
end)
local run = flow.new("f"):add(StepOp):add(flow.op("OtherOp", function(ctx) ctx:log "second" end))
  :add(flow.op("ThirdOp", function(ctx) ctx:log "third" end)):run()
flow.sleep(0)
check.equal(#ends, 1)
check.equal(ends[1].message, "successfully")
check.equal(ends[1].time, 1.0)
check.same(several, { "first", "n", "second" })
local events = run:events()
check.equal(#all, #events)
for index, event in ipairs(events) do check.same(all[index], event) end

-- Transitions of machines.
local moves = {}
flow.on_event({ kind = "transition" }, function(event) moves[#moves + 1] = event.message end)
flow.machine { name = "m", start = "a", flow.step("a", { run = function() end, flow.next(flow.forward "b") }),
  flow.step("b", { run = function() end }) }:run()
flow.sleep(0)
check.equal(#moves, 1)

-- One that waits gets the next event when it has ended; one that fails is reported, and nothing else fails.
local open, most, count = 0, 0, 0
flow.on_event({ kind = "log" }, function()
  open, count = open + 1, count + 1
  most = math.max(most, open)
  flow.sleep(10)
  open = open - 1
end)
flow.on_event({ kind = "log" }, function() error "not again" end)
run = flow.op("LogOp", function(ctx) for i = 1, 3 do ctx:log(i) end end):run {}
check.equal(run.ok, true)
check.equal(run.duration, 0.0)
flow.sleep(31)
check.equal(most, 1)
check.equal(count, 3)

-- It gets a copy: changes of that reach nothing. Secrets are hidden.
local texts = {}
flow.on_event({ kind = "set" }, function(event)
  texts[#texts + 1] = event.value
  event.value, event.key = "changed", nil
end)
run = flow.op("SecretOp", function(ctx) ctx:set("token", flow.secret "a hidden text") end):run {}
flow.sleep(0)
check.same(texts, { "<redacted>" })
check.equal(run.data.token ~= nil, true)

local function refused(text, ...)
  local ok, problem = pcall(flow.on_event, ...)
  check.equal(ok, false)
  check.contains(tostring(problem), text)
end
refused("bad argument #2 to 'on_event' (function expected, got no value)", { kind = "log" })
refused("bad argument #2 to 'on_event' (function expected, got no value)")
refused("bad argument #1 to 'on_event' (table expected, got string)", "log", print)
refused("unknown field 'knd' (did you mean 'kind'?)", { knd = "log" }, print)
refused("bad argument #1 to 'on_event' (field 'kind': there are no events of the kind 'finsh' (did you mean 'finish'?))",
  { kind = "finsh" }, print)
refused("bad argument #1 to 'on_event' (field 'op': string, number or list of them expected, got boolean)", { op = true }, print)
