-- Prints the time and the CPU time that work takes, a line each: the first time, the second time,
-- and the medians of the third to the seventh time. `check` is called after each, untimed.
local clock = require "clock"

return function(scale, work, check)
  local times, used = {}, {}
  for round = 1, 7 do
    collectgarbage()
    local stop = clock()
    work()
    local wall, cpu = stop(scale)
    check()
    if round <= 2 then
      print(wall, cpu)
    else
      times[#times + 1], used[#used + 1] = wall, cpu
    end
  end
  table.sort(times)
  table.sort(used)
  print(times[3], used[3])
end
