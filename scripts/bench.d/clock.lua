-- The clocks of a measurement, the same ones for flowlua and for its peers in Lua: luv's for the
-- time that passes, and the process's for the CPU time of all its threads.
--
--   local stop = require "clock"()
--   …
--   print(stop(1e9 / n))  -- both, in nanoseconds of each of n
local hrtime, cpu = require "luv".hrtime, os.clock
-- The traceback of an error looks for names among all loaded functions, and luv has 300.
package.loaded.luv = nil

return function()
  local time, used = hrtime(), cpu()
  return function(scale)
    local passed, took = hrtime() - time, cpu() - used
    return passed / 1e9 * scale, took * scale
  end
end
