-- Measures units: prints the time that passes and the CPU time of each of `count` units, in
-- nanoseconds, and the most memory that the process has used, in bytes. `prepare` returns a
-- function that executes so many of them, `runs` times, and the seconds in which nothing happens
-- then.
return function(prepare, count, runs)
  local work, idle = prepare(count)
  collectgarbage()
  local stop = require "clock"()
  for _ = 1, runs do work() end
  local wall, cpu = stop(1e9 / count / runs)
  print(wall - (idle or 0) * 1e9 / count, cpu)
  for line in io.lines "/proc/self/status" do
    local peak = line:match "^VmHWM:%s*(%d+)"
    if peak then print(tonumber(peak) * 1024) end
  end
end
