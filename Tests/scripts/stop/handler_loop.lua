-- An endless message handler ends at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  local function forever() while true do end end
  while true do xpcall(forever, forever) end
end)
