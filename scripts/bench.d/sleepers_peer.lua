-- The same with luv: a coroutine and a timer each, and no log.
local uv = require "luv"
local n = tonumber(arg[1])
local create, resume, running, yield =
  coroutine.create, coroutine.resume, coroutine.running, coroutine.yield

local function sleep(milliseconds)
  local co, timer = running(), uv.new_timer()
  timer:start(milliseconds, 0, function()
    timer:close()
    assert(resume(co))
  end)
  yield()
end

local finished = 0
local function sleepy()
  sleep(100)
  finished = finished + 1
end

local before = uv.hrtime()
for _ = 1, n do assert(resume(create(sleepy))) end
uv.run()
local elapsed = uv.hrtime() - before
assert(finished == n)
print(elapsed / 1e6 - 100)
for line in io.lines("/proc/self/status") do
  local peak = line:match("^VmHWM:%s*(%d+)")
  if peak then print(peak / 1024) end
end
