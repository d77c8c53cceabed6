-- A comparator of table.sort that doesn't end.
require("hostile").stop(function()
  while true do
    pcall(table.sort, { 3, 2, 1, 5, 4 }, function() while true do end end)
  end
end)
