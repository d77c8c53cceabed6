-- The same with luv, a coroutine and a timer each, or with cqueues; and no log.
--
--   sleepers_peer.lua luv|cqueues COUNT
local n = tonumber(arg[2])
local finished, elapsed = 0, nil
local measures = {}

function measures.luv()
  local uv = require "luv"
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

  local function sleepy()
    sleep(100)
    finished = finished + 1
  end

  local before = uv.hrtime()
  for _ = 1, n do assert(resume(create(sleepy))) end
  uv.run()
  elapsed = (uv.hrtime() - before) / 1e6
end

function measures.cqueues()
  local cqueues = require "cqueues"
  local queue = cqueues.new()
  local before = cqueues.monotime()
  for _ = 1, n do
    queue:wrap(function()
      cqueues.sleep(0.1)
      finished = finished + 1
    end)
  end
  assert(queue:loop())
  elapsed = (cqueues.monotime() - before) * 1e3
end

measures[arg[1]]()
assert(finished == n)
print(elapsed - 100)
for line in io.lines("/proc/self/status") do
  local peak = line:match("^VmHWM:%s*(%d+)")
  if peak then print(peak / 1024) end
end
