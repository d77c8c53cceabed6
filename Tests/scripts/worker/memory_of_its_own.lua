-- An op with `memory` has its worker for itself while it executes; afterwards the worker is as it was before.
local host = require "host"
local check = require "check"
local result = host.script([[
local flow = require "flow"
local function fill(n)
  local held = {}
  for i = 1, n do held[i] = ("x"):rep(1 << 20) end
  return held
end
local LimitedOp = flow.op("LimitedOp", { thread = "worker", memory = "4M", gives = { ended = "number" },
  run = function(ctx)
    flow.sleep(10)
    ctx:set("ended", flow.now())
    fill(8)
  end })
local OtherOp = flow.op("OtherOp", { thread = "worker", gives = { began = "number", count = "integer" },
  run = function(ctx)
    ctx:set("began", flow.now())
    ctx:set("count", #fill(16))
  end })
local limited, other = LimitedOp:start(), OtherOp:start()
other:wait()
assert(other.ok, other.error)
assert(not limited.ok and limited.error.message:find("not enough memory"), limited.error)
assert(other.data.began >= limited.data.ended, "they had one worker at the same time")
assert(other.data.count == 16)
-- One that is stopped while it waits for a worker lets others have it.
local SleepOp = flow.op("SleepOp", { thread = "worker", run = function() flow.sleep(100) end })
local sleeping = SleepOp:start()
local waiting, later = LimitedOp:start(), OtherOp:start()
flow.sleep(1)
waiting:cancel("enough")
later:wait()
assert(later.ok, later.error)
assert(not sleeping.is_settled and sleeping.state ~= "succeeded")
sleeping:cancel()
print("done")
]], {}, { before = { "--workers", "1", "--virtual-clock" } })
check.equal(result.stderr, "")
check.equal(result.stdout, "done\n")
