-- An op that catches its timeout at a wait and continues is stopped.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  local flow = require 'flow'
  while true do pcall(flow.sleep, 10) end
end)
