-- A loop of protected calls can't catch the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  while true do pcall(function() while true do end end) end
end)
