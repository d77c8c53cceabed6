-- Building strings ends.
require("hostile").stop(function()
  local text = ''
  while true do
    text = text .. 'x'
    if #text > 10000 then text = '' end
  end
end)
