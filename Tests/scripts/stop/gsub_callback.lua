-- An endless callback of string.gsub ends at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  while true do
    pcall(string.gsub, 'xxx', 'x', function() while true do end end)
  end
end)
