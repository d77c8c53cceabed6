-- Numbers keep their subtype, sign of zero, NaN and limits.
local flow, check = require "flow", require "check"
local numbers = {
  0, 1, -1, 1.0, 0.0, -0.0, 1 / 0, -1 / 0, 0 / 0, 2 ^ 53, 2 ^ 63, -2 ^ 63, 1e308, 5e-324, 0.1,
  math.maxinteger, math.mininteger, 9007199254740993,
}
local SetOp = flow.op("SetOp", function(ctx, i) ctx:set("n", numbers[i]) end)
local GetOp = flow.op("GetOp", function(ctx, i)
  check.equal(ctx:get("n", "number"), numbers[i])
  check.equal(ctx:get("n", math.type(numbers[i])), numbers[i])
end)
for i, number in ipairs(numbers) do
  local run = flow.new("numbers"):data { given = number }:add(SetOp(i)):add(GetOp(i)):run()
  assert(run.ok, run.error)
  check.equal(run.data.n, number)
  check.equal(run.data.given, number)
  check.contains(run:summary(), "[DataBucket] add for n: " .. tostring(number) .. "\n")
end
