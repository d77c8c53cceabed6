-- Arguments are kept by reference, and two bindings of a class are independent.
local flow, check = require "flow", require "check"
local shared, seen = {}, {}
local KeepOp = flow.op("KeepOp", function(_, value) seen[#seen + 1] = value end)
local a, b = KeepOp(shared), KeepOp("other")
assert(flow.new("keep"):add(a):add(b):add(a):run().ok)
assert(rawequal(seen[1], shared) and seen[2] == "other" and rawequal(seen[3], shared))
