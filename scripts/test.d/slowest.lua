-- Prints the twenty slowest tests: slowest.lua EVENTS OUTPUT, the runner's stream of events and its
-- output. Each has its own time. Of scripts the output has lines `took: SECONDS s  SCRIPT`, as
-- many of their one test run at the same time. A test without arguments counts as begun while it
-- waits for its turn: those have a time of their own with `scripts/test --no-parallel` only.
local json = require "flow.json"
local events, output, isSerial = ...

local started, times = {}, {}
-- Only tests with arguments have events of their cases.
for event in json.lines { path = events } do
  local payload = event.kind == "event" and event.payload or {}
  local id, instant = payload.testID, payload.instant and payload.instant.absolute
  local name = id and id:match "^(.-/.-)/[%w_]+%.swift:[%d:]+$"
  local isOwn = name and not name:find "ScriptTests/script"
  if isOwn and payload.kind == "testStarted" then
    started[id] = { at = instant, cases = {} }
  elseif isOwn and payload.kind == "testCaseStarted" then
    local text = (payload.messages[1] or {}).text or ""
    table.insert(started[id].cases, { at = instant, argument = text:match "→ (.-) to \"" or "" })
  elseif isOwn and payload.kind == "testCaseEnded" then
    local case = table.remove(started[id].cases, 1)
    times[#times + 1] = { instant - case.at, name .. " " .. case.argument }
    started[id].hasCases = true
  elseif isOwn and payload.kind == "testEnded" and isSerial and not started[id].hasCases then
    times[#times + 1] = { instant - started[id].at, name }
  end
end
for line in io.lines(output) do
  local seconds, script = line:match "^took: ([%d.]+) s  (.*)"
  if seconds then times[#times + 1] = { tonumber(seconds), script } end
end
table.sort(times, function(a, b) return a[1] > b[1] end)
print "The slowest tests:"
for i = 1, math.min(20, #times) do print(("%8.2f s  %s"):format(times[i][1], times[i][2])) end
