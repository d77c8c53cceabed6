-- Prints the twenty slowest tests: slowest.lua EVENTS OUTPUT, the runner's stream of events and its
-- output. Each has its own time. Of scripts the output has lines `took: SECONDS s  SCRIPT`, as
-- many of their one test run at the same time.
local json = require "flow.json"
local events, output = ...

local started, times = {}, {}
for event in json.lines { path = events } do
  local payload = event.kind == "event" and event.payload or {}
  local id, instant = payload.testID, payload.instant and payload.instant.absolute
  if payload.kind == "testCaseStarted" and not id:find "ScriptTests/script" then
    started[id] = started[id] or {}
    local message = payload.messages[1] or {}
    table.insert(started[id], { at = instant, text = message.text or "" })
  elseif payload.kind == "testCaseEnded" and started[id] and #started[id] > 0 then
    local case = table.remove(started[id], 1)
    local argument = case.text:match "→ (.-) to \"" or ""
    local name = id:gsub("/[%w_]+%.swift:[%d:]+$", "")
    times[#times + 1] = { instant - case.at, name .. " " .. argument }
  end
end
for line in io.lines(output) do
  local seconds, script = line:match "^took: ([%d.]+) s  (.*)"
  if seconds then times[#times + 1] = { tonumber(seconds), script } end
end
table.sort(times, function(a, b) return a[1] > b[1] end)
print "The slowest tests:"
for i = 1, math.min(20, #times) do print(("%8.2f s  %s"):format(times[i][1], times[i][2])) end
