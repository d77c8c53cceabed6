-- Deep recursion and stack overflows end at the timeout.
-- clock: real: busy code is stopped by the machine's clock
require("hostile").stop(function()
  local function deeper(n) return 1 + deeper(n + 1) end
  while true do pcall(deeper, 1) end
end)
