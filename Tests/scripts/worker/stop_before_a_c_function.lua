-- A worker that has taken a stop executes no further instruction of the stopped code, which could be one into C.
-- clock: real: the virtual clock stands still while a worker is busy
local flow = require "flow"
local check = require "check"

-- The stop comes at about the time when the code enters a C function that can't be stopped.
for i = 1, 10 do
  local StuckOp = flow.op("StuckOp", {
    thread = "worker", timeout = i * 0.0002,
    run = function()
      for _ = 1, 200 do end
      (("x"):rep(100000)):find(".-.-.-.-b")
    end,
  })
  local begin = flow.now()
  check.equal(StuckOp:run().error.kind, "timeout")
  -- Either the code is stopped, or its worker is given up after a second. One that had taken the stop would
  -- have a minute for cleanups.
  assert(flow.now() - begin < 40, flow.now() - begin)
end
