-- summary accepts time = "iso" and durations = true and refuses other values.
local flow, check = require "flow", require "check"
local run = flow.op("LogOp", function(ctx) ctx:log("first\nsecond") flow.sleep(0.01) end):run { a = 1 }
local plain = run:summary()
check.equal(run:summary {}, plain)
check.equal(run:summary(nil), plain)
check.equal(run:summary { durations = false }, plain)
check.contains(plain, "M [LogOp] first\\nsecond\n")
local iso = run:summary { time = "iso" }
local count = 0
for line in iso:gmatch("[^\n]+") do
  if line:find(" [", 1, true) then
    count = count + 1
    local stamp = line:match("^(%S+) %[")
    assert(stamp:match("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$")
      or stamp:match("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%d[+-]%d%d:%d%d$"), line)
  end
end
check.equal(count, 5)
check.lacks(iso, "successfully (")
local long = run:summary { time = "iso", durations = true }
assert(long:find("%[LogOp%] DidFinish: successfully %(0%.%d+s%)\n"), long)
check.equal(run:summary():sub(-1), "\n")
check.usage(function() run:summary(1) end, "summary", "#1", "table expected, got number")
check.usage(function() run:summary("iso") end, "summary", "#1", "table expected, got string")
check.usage(function() run:summary { time = "clock" } end, "summary", "#1", "time", '"iso" expected, got "clock"')
check.usage(function() run:summary { time = true } end, "summary", "time", "string expected, got boolean")
check.usage(function() run:summary { durations = 1 } end, "summary", "durations", "boolean expected, got number")
check.usage(function() run:summary { duration = true } end, "summary", "did you mean 'durations'?")
check.usage(function() run:summary { "iso" } end, "summary", "#1", "key of type integer")
check.usage(function() run:summary { time = flow.secret("iso!") } end, "summary", "string expected, got secret")
check.usage(function() run.summary() end, "summary", "run expected, got no value")
