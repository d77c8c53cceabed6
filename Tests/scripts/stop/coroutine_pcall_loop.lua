-- Endless protected calls in coroutines end at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  while true do pcall(coroutine.wrap(function() while true do end end)) end
end)
