-- Drives a browser without a window through scripts/lib/browser.py, which describes the commands.
local flow, json = require "flow", require "flow.json"

local browser = {}

-- Performs commands; returns the list of their results. A JavaScript error is an error here.
function browser.perform(commands)
  local lines = {}
  for i, command in ipairs(commands) do lines[i] = json.encode(command) end
  local result = flow.exec({ "python3", "scripts/lib/browser.py" },
    { stdin = table.concat(lines, "\n"), timeout = 900 }):await()
  local results = {}
  for line in result.stdout:gmatch "[^\n]+" do results[#results + 1] = json.decode(line) end
  return results
end

return browser
