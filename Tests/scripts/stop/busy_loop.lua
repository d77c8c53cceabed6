-- A loop that does nothing ends at the timeout.
require("hostile").stop(function()
  while true do end
end)
