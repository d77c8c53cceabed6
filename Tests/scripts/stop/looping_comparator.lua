-- An endless comparator of table.sort ends at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  while true do
    pcall(table.sort, { 3, 2, 1, 5, 4 }, function() while true do end end)
  end
end)
