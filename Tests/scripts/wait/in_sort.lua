-- Callbacks of C functions may wait if no other such wait is in progress.
local flow, check = require "flow", require "check"
local list = { 3, 1, 2 }
table.sort(list, function(a, b) flow.sleep(0.0005) return a < b end)
check.same(list, { 1, 2, 3 })
check.equal((("abc"):gsub("%a", function(c) flow.sleep(0.0005) return c:upper() end)), "ABC")
check.equal(tostring(setmetatable({}, { __tostring = function() flow.sleep(0.0005) return "text" end })), "text")
check.equal(load(coroutine.wrap(function()
  flow.sleep(0.0005) coroutine.yield("return ")
  flow.sleep(0.0005) coroutine.yield("42")
end))(), 42)
