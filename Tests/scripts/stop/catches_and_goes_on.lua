-- An op that waits, catches its timeout and goes on is ended all the same.
require("hostile").stop(function()
  local flow = require 'flow'
  while true do pcall(flow.sleep, 10) end
end)
