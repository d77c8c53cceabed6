-- With --virtual-clock a sleep takes no time.
local host = require "host"
local check = require "check"
local began = os.time()
local result = host.script([[
  local flow = require "flow"
  local begin = flow.now()
  flow.sleep(3600)
  local run = flow.op("WaitOp", function() flow.sleep(86400) end):run()
  print(run.ok, run.duration, flow.now() - begin)
]], {}, { before = { "--virtual-clock" } })
check.equal(result.stderr, "")
check.equal(result.stdout, "true\t86400.0\t90000.0\n")
assert(os.time() - began < 60)

-- A sleep up to the end of the clock takes a finite time.
result = host.script([[
  local flow = require "flow"
  local run = flow.op("WaitOp", function() flow.sleep(1e300) flow.sleep(1e308) end):run()
  print(run.duration == 2^63 / 1e9, run.duration < math.huge, #run:events())
]], {}, { before = { "--virtual-clock", "--events", "-", "--summary=json" } })
check.contains(result.stdout, "true\ttrue\t")
check.lacks(result.stdout .. result.stderr, "null", "inf")
