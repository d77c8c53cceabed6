-- Any depth that max_depth allows is read and written, without recursion.
local json = require "flow.json"
local check = require "check"

for _, depth in ipairs { 0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 999, 1000 } do
  local arrays = ("["):rep(depth) .. "1" .. ("]"):rep(depth)
  check.equal(json.encode(json.decode(arrays)), arrays)
  local objects = ('{"a":'):rep(depth) .. "1" .. ("}"):rep(depth)
  check.equal(json.encode(json.decode(objects)), objects)
end
check.raises(function() json.decode(("["):rep(1001) .. ("]"):rep(1001)) end, "nested deeper", "column 1001")
local text = ("["):rep(10000) .. ("]"):rep(10000)
check.equal(json.encode(json.decode(text, { max_depth = 10000 }), { max_depth = 10000 }), text)
check.raises(function() json.decode("[[1]]", { max_depth = 1 }) end, "nested deeper", "column 2")
check.equal(json.decode("[1]", { max_depth = 1 })[1], 1)
-- Values wait on Lua's stack at each level: more than it has is an error, not a crash.
local wide = ("[" .. ("1,"):rep(100)):rep(100000)
check.raises(function() json.decode(wide, { max_depth = 100000 }) end, "stack overflow")
