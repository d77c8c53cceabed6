-- An op that catches its timeout at a wait and is then busy is stopped.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  local flow = require 'flow'
  pcall(flow.sleep, 10)
  while true do end
end)
