-- A loop of protected calls can't catch the timeout.
require("hostile").stop(function()
  while true do pcall(function() while true do end end) end
end)
