-- Many short coroutines end at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  while true do pcall(coroutine.wrap(function() for _ = 1, 900 do end end)) end
end)
