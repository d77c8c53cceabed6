-- A callback of string.gsub that doesn't end.
require("hostile").stop(function()
  while true do
    pcall(string.gsub, 'xxx', 'x', function() while true do end end)
  end
end)
