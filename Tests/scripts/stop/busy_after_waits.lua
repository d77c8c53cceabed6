-- A busy op that has waited before is stopped.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  local flow = require 'flow'
  for _ = 1, 3 do flow.sleep(0.001) end
  while true do pcall(function() while true do end end) end
end)
