-- Many short coroutines don't hide from the timeout.
require("hostile").stop(function()
  while true do pcall(coroutine.wrap(function() for _ = 1, 900 do end end)) end
end)
