-- A message handler that doesn't end doesn't either.
require("hostile").stop(function()
  local function forever() while true do end end
  while true do xpcall(forever, forever) end
end)
