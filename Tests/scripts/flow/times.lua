-- Each event begins with its local time, h:mm:ss AM or PM, without a leading zero.
local flow = require "flow"
local run = flow.new("times"):data { a = 1 }:add(flow.op("LogOp", function(ctx) ctx:log("x") end)):run()
local count = 0
for line in run:summary():gmatch("[^\n]+") do
  local hour = line:match("^(%d%d?):[0-5]%d:[0-5]%d [AP]M %[")
  if hour then
    count = count + 1
    assert(not hour:find("^0") and tonumber(hour) >= 1 and tonumber(hour) <= 12, line)
  end
end
assert(count == 5, count)
assert(run:summary():sub(-1) == "\n")
