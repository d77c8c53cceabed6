-- Events and traces have each program and request of an op, with its times, status, size and error.
-- clock: real: programs and requests take time
-- expect-stderr: (sleep 100.5) is stopped, as run 'ends' has ended: flow.exec(…):await() waits for the program
local flow, check, json = require "flow", require "check", require "flow.json"
local servers = require "servers"
local server <close> = servers.hostile()
local url = server:url("/raw", { data = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" })
local address = url:match "^[^?]+"
local missing = server:raw "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

-- The events of programs and requests, as lines.
local function lines(run)
  local found = {}
  for _, event in ipairs(run:events()) do
    if event.kind == "program" or event.kind == "request" then
      assert(event.started >= 0 and event.started <= event.time, event.message)
      found[#found + 1] = ("%s %d %s %s: %s %s %s"):format(event.path:match "[^/]*$", event.attempt, event.kind,
        event.message, event.outcome, event.status, event.error_kind)
    end
  end
  return found
end

-- How many of them there were, and how many have failed, as a report has them.
local function merged(run)
  local rows = {}
  for line in run:report():match "\n### Programs and requests\n(.*)":gmatch "[^\n]+" do
    local name, runs, failed = line:match "^| `(.-)` | (%d+) | (%d+) |"
    if name then rows[name] = runs .. ", " .. failed end
  end
  return rows
end

local ExecOp = flow.op("ExecOp", { retry = 2, run = function(ctx)
  flow.exec({ "sh", "-c", "exit 3" }, { check = ctx.attempt == 1 }):await()
  flow.exec({ "sh", "-c", "kill $$" }, { check = false }):await()
  pcall(function() flow.exec { "no-such-program" }:await() end)
  flow.spawn(function() return flow.exec { "true" }:await() end):await()
end })
-- Programs outside of runs belong to none.
flow.exec { "true" }:await()
local run = flow.new("programs"):will_start(function() flow.exec { "echo" }:await() end):add(ExecOp):run()
check.same(lines(run), {
  "programs 1 program echo: succeeded 0 nil",
  "ExecOp 1 program sh -c 'exit 3': failed 3 error",
  "ExecOp 2 program sh -c 'exit 3': succeeded 3 nil",
  "ExecOp 2 program sh -c 'kill $$': succeeded 143 nil",
  "ExecOp 2 program no-such-program: failed nil error",
  "ExecOp 2 program true: succeeded 0 nil",
})
local events = run:events()
for _, event in ipairs(events) do
  if event.kind == "program" then
    check.equal(event.signal, event.message:find "kill" and 15 or nil)
    check.equal(math.type(event.pid), not event.message:find "no%-such" and "integer" or nil)
  end
end
check.lacks(run:summary(), "echo", "kill")
check.same(merged(run), { echo = "1, 0", sh = "3, 1", ["no-such-program"] = "1, 1", ["true"] = "1, 0" })

-- The op that executes a program, one that is stopped, and one that outlives its op.
local SlowOp = flow.op("SlowOp", { timeout = 0.05, run = function() flow.exec { "sleep", "100" }:await() end })
local LeaveOp = flow.op("LeaveOp", function() flow.exec { "sleep", "100.5" } end)
run = flow.new("ends"):add(flow.ops.ExecOp { "echo", "a b" }):add(LeaveOp):add(SlowOp):run()
check.equal(run.ok, false)
check.same(lines(run), {
  "ExecOp 1 program echo 'a b': succeeded 0 nil", "SlowOp 1 program sleep 100: cancelled 143 cancelled",
  "LeaveOp 1 program sleep 100.5: cancelled 143 cancelled",
})

-- Requests: no part of the user or query is shown.
local GetOp = flow.op("GetOp", function()
  flow.http((url:gsub("//", "//ada:pw@"))):await()
  flow.http { url = missing, check = false }:await()
  flow.http.delete(missing):await()
end)
run = flow.new("requests"):add_grouped(GetOp, { input = "list", as = "x" }):data { list = { 1 } }:run()
check.equal(run.ok, false)
check.same(lines(run), {
  "GetOp #1 1 request GET " .. address .. ": succeeded 200 nil",
  "GetOp #1 1 request GET " .. address .. ": succeeded 404 nil",
  "GetOp #1 1 request DELETE " .. address .. ": failed 404 http",
})
local origin = address:match "^http://[^/]+"
check.same(merged(run), { ["GET " .. origin] = "2, 0", ["DELETE " .. origin] = "1, 1" })
run = flow.ops.HTTPOp { url = url, into = "page" }:run()
local request
for _, event in ipairs(run:events()) do if event.kind == "request" then request = event end end
check.same({ request.id, request.method, request.url, request.status, request.bytes, request.outcome },
  { 0, "GET", address, 200, 5, "succeeded" })
local RefusedOp = flow.op("RefusedOp", function() flow.http("http://127.0.0.1:1/"):await() end)
run = RefusedOp:run()
check.equal(run.ok, false)
check.same(lines(run), { "RefusedOp 1 request GET http://127.0.0.1:1/: failed nil network" })

-- Workers, in jobs, groups and continuations.
local JobOp = flow.op("JobOp", { thread = "worker", retry = 2, run = function()
  flow.exec { "echo", "job" }:await()
end })
local ItemOp = flow.op("ItemOp", { thread = "worker", needs = { x = "integer", url = "string" }, run = function(ctx)
  flow.exec { "echo", tostring(ctx:get "x") }:await()
  flow.http(ctx:get "url"):await()
end })
local NextOp = flow.op("NextOp", function()
  return flow.resolved("next"):next_on_success("worker", function(word) flow.exec { "echo", word }:await() end)
end)
run = flow.new("workers"):data { list = { 7 }, url = url }:add(JobOp)
  :add_grouped(ItemOp, { input = "list", as = "x" })
  :add(NextOp):run()
check.equal(run.ok, true)
check.same(lines(run), {
  "JobOp 1 program echo job: succeeded 0 nil", "ItemOp #1 1 program echo 7: succeeded 0 nil",
  "ItemOp #1 1 request GET " .. address .. ": succeeded 200 nil", "NextOp 1 program echo next: succeeded 0 nil",
})

-- A trace has them within the slice of their op; programs at the same time have rows of their own.
local BothOp = flow.op("BothOp", function()
  flow.when_all_finish({ flow.exec { "sleep", "0.05" }, flow.exec { "sleep", "0.06" } }):await()
end)
local slices, rows = {}, {}
for _, event in ipairs(json.decode(BothOp:run():trace()).traceEvents) do
  if event.ph == "X" then slices[#slices + 1] = event end
end
check.equal(#slices, 3)
for _, slice in ipairs { slices[2], slices[3] } do
  check.equal(slice.name, "sleep")
  check.equal(slice.cat, "program")
  check.contains(slice.args.command, "sleep 0.0")
  check.equal(slice.args.path, "BothOp")
  assert(slice.ts >= slices[1].ts and slice.ts + slice.dur <= slices[1].ts + slices[1].dur + 0.01)
  rows[#rows + 1] = slice.tid
end
table.sort(rows)
check.same(rows, { 1, 2 })
