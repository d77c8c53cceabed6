-- run:events() has exactly the documented fields of each kind of event.
local flow, check = require "flow", require "check"
local run = flow.new("events"):data { items = { "a" } }
  :add(flow.op("SetOp", function(ctx)
    ctx:set("y", 1) ctx:set("y", { 2 }) ctx:set("y", nil) ctx:log("said\nmore")
  end))
  :add_grouped(flow.op("ItemOp", { needs = { item = "string" }, run = function(ctx) ctx:fail("no") end }),
    { input = "items" })
  :run()
check.equal(run.ok, false)
local events = run:events()
local times = {}
for i, event in ipairs(events) do
  times[i], event.time = event.time, nil
  -- The identity of the execution is the subject of another script.
  for _, field in ipairs { "id", "parent", "path", "run", "lane", "queued" } do event[field] = nil end
end
check.same(events, {
  { kind = "start", op = "SetOp", attempt = 1 },
  { kind = "set", op = "SetOp", attempt = 1, key = "y", value = "1" },
  { kind = "replace", op = "SetOp", attempt = 1, key = "y", value = "{2}", old_value = "1" },
  { kind = "remove", op = "SetOp", attempt = 1, key = "y" },
  { kind = "log", op = "SetOp", attempt = 1, message = "said\nmore" },
  { kind = "finish", op = "SetOp", attempt = 1, message = "successfully" },
  { kind = "group", op = "ItemOp", attempt = 1, message = "group created: 1" },
  { kind = "start", op = "ItemOp", attempt = 1, index = 1 },
  { kind = "finish", op = "ItemOp", attempt = 1, index = 1, message = "withError: no" },
  { kind = "group", op = "ItemOp", attempt = 1, message = "not allow failure in group. stop immediately." },
})
for i, time in ipairs(times) do assert(time >= (times[i - 1] or 0), i) end
-- The list is the script's own: changing it changes no other.
check.equal(run:events()[1].time ~= nil, true)
check.usage(function() run.events({}) end, "events", "run expected, got table")
-- A run in progress shows what happened so far.
local pending
flow.op("SelfOp", function(ctx) ctx:log("now") pending = ctx.run:events() end):run()
check.equal(pending[#pending].message, "now")
check.equal(#pending, 2)
-- Many events.
local many = flow.op("ManyOp", function(ctx) for i = 1, 20000 do ctx:set("k", i) end end):run()
check.equal(#many:events(), 20002)
check.equal(many:events()[20001].value, "20000")
