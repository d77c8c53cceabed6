-- Endless building of strings ends at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  local text = ''
  while true do
    text = text .. 'x'
    if #text > 10000 then text = '' end
  end
end)
