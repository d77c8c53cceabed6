-- Endless metamethods end at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  local function forever() while true do pcall(function() while true do end end) end end
  local meta = { __index = forever, __add = forever, __eq = forever, __tostring = forever }
  local t, u = setmetatable({}, meta), setmetatable({}, meta)
  while true do
    pcall(function() return t.x end)
    pcall(function() return t + u end)
    pcall(function() return t == u end)
    pcall(tostring, t)
  end
end)
