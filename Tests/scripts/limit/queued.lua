-- The time that an op waits for a limit counts as queued: it isn't a part of its timeout, and lines and the report say so.
local flow, check = require "flow", require "check"
local db = flow.limit("db", 1)
local Op = flow.op("QueryOp", { needs = { n = "integer" }, limit = db, timeout = 2, run = function() flow.sleep(1.5) end })
local holder = Op:start { n = 0 }
local run = flow.new("f"):add(Op):start { n = 1 }
local group = flow.new("g"):add_grouped(Op, { input = "ns", max_concurrent = 3 }):start { ns = { 1, 2 } }
for _, each in ipairs { holder, run, group } do
  each:wait()
  check.equal(each.state, "succeeded")
end
check.contains(run:summary(), "[QueryOp] Queued 1.5s for limit db\n12:00:01 AM [QueryOp] WillStart\n")
check.lacks(holder:summary(), "Queued")
local texts = {}
for _, event in ipairs(run:events()) do texts[#texts + 1] = event.kind .. " " .. tostring(event.message) end
check.contains(table.concat(texts, "\n"), "log Queued 1.5s for limit db")
check.contains(run:report(), "queued 1.5 s for `limit db`", "| 1.5 s for `limit db` |")
check.contains(group:summary(), "[QueryOp #1] Queued 3s for limit db", "[QueryOp #2] Queued 4.5s for limit db")
check.contains(group:report(), "4.5 s for `limit db`")
check.equal(run.duration, 3.0)

-- While it waits, it shows in traces as queued, and nothing of it has begun.
local blocked = Op:start { n = 0 }
local waiting = flow.new("f"):add(Op):start { n = 1 }
check.lacks(waiting:summary(), "WillStart")
check.equal(db.waiting, 1)
blocked:wait()
waiting:wait()
check.equal(waiting.state, "succeeded")
