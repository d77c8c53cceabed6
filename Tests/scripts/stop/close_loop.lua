-- An endless `__close` after the stop ends after the grace of the op.
-- clock: real: busy code is stopped by the machine's clock
-- expect-status: 1
-- expect-stderr: a __close of [HostileOp] was cut after a grace of 1s, while it was busy
-- expect-stderr: a __close of [PlainOp] was cut after a grace of 1s, while it was busy
require("hostile").stop(function()
  local c <close> = setmetatable({}, { __close = function()
    while true do pcall(function() while true do end end) end
  end })
  while c do end
end, 1)
