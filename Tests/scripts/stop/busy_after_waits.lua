-- An op that waits first is stopped when it is busy later.
require("hostile").stop(function()
  local flow = require 'flow'
  for _ = 1, 3 do flow.sleep(0.001) end
  while true do pcall(function() while true do end end) end
end)
