-- The log shows at most 120 characters of a table, splits none, and keeps bytes that aren't UTF-8.
local flow, check = require "flow", require "check"
local function shown(value)
  local run = flow.op("SetOp", function(ctx) ctx:set("value", value) end):run()
  return run:summary():match("add for value: (.-)\n[%d:]+ [AP]M %[SetOp%] DidFinish")
end
check.equal(shown { ("ä"):rep(200) }, "{" .. ("ä"):rep(118) .. "…")
check.equal(shown { ("\x80"):rep(200) }, "{" .. ("\x80"):rep(118) .. "…")
check.equal(shown { ("😀"):rep(118) }, "{" .. ("😀"):rep(118) .. "}")
check.equal(shown { ("😀"):rep(119) }, "{" .. ("😀"):rep(118) .. "…")
check.equal(shown { "\xff\x00\xc3", a = "\xe2\x82" }, "{\xff\\x00\xc3, a = \xe2\x82}")
check.equal(shown { a = "x\ny" }, "{a = x\\ny}")
-- Keys: numbers by value, strings by bytes, booleans.
check.equal(shown { [2.5] = 1, [-1] = 2, z = 3, A = 4, [true] = 5, [false] = 6, [10] = 7 },
  "{-1 = 2, 2.5 = 1, 10 = 7, A = 4, z = 3, false = 6, true = 5}")
check.equal(shown { 1, nil, 3 }, "{1, 3 = 3}")
local deep = {}
for _ = 1, 10000 do deep = { deep } end
check.equal(shown(deep), ("{"):rep(119) .. "…")
local both = {}
for _ = 1, 100 do both = { both, both } end
check.equal(utf8.len(shown(both)), 120)
local huge = {}
for i = 1, 100000 do huge["k" .. i] = i end
check.equal(shown(huge):sub(1, 24), "{k1 = 1, k10 = 10, k100 ")
local number = setmetatable({}, { __tostring = function() return 7 end })
check.equal(shown(number), tostring(number))
check.equal(shown { number, setmetatable({}, { __tostring = function() return "as text" end }) }:sub(-10), ", as text}")
