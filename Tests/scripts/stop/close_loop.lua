-- Closing variables after the stop has the grace period, and then ends too.
require("hostile").stop(function()
  local c <close> = setmetatable({}, { __close = function()
    while true do pcall(function() while true do end end) end
  end })
  while c do end
end, 1)
