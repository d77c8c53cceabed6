-- A wait that ended by its timeout leaks no memory.
local flow = require "flow"
local function resident()
  for line in io.lines "/proc/self/status" do
    local kibibytes = line:match "^VmRSS:%s*(%d+)"
    if kibibytes then return tonumber(kibibytes) end
  end
end
local run = flow.op("SlowOp", function() flow.sleep(0.5) end):start()
for _ = 1, 1000 do run:wait(0) end
collectgarbage()
local before = resident()
for _ = 1, 30000 do
  if run:wait(0) then break end
end
collectgarbage()
-- 110 bytes a wait would be 3,300 KiB. A sanitizer keeps what is freed for a while.
assert(os.getenv "FLOWLUA_SANITIZER" or resident() - before < 1500, resident() - before)
run:wait()
assert(run.ok)
