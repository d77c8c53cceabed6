-- An op that catches the timeout at a wait and is busy then ends.
require("hostile").stop(function()
  local flow = require 'flow'
  pcall(flow.sleep, 10)
  while true do end
end)
