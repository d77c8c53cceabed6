-- An empty endless loop ends at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  while true do end
end)
