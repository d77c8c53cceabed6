-- Neither can protected calls of coroutines.
require("hostile").stop(function()
  while true do pcall(coroutine.wrap(function() while true do end end)) end
end)
