-- A malformed type is an error of the op that declares it, with the key's name.
local flow, check = require "flow", require "check"
local function f() end
for _, malformed in ipairs { "", "?", "|", "string|", "|string", "string||number", "[]" } do
  for _, field in ipairs { "needs", "gives" } do
    check.usage(function()
      flow.op("AOp", { run = f, [field] = { the_key = malformed } })
    end, "op", "the_key")
  end
end
for _, malformed in ipairs { 42, true, {}, coroutine.create(f) } do
  check.usage(function() flow.op("AOp", { run = f, needs = { the_key = malformed } }) end, "op", "the_key")
end
check.usage(function() flow.op("AOp", { run = f, needs = { "string" } }) end, "op", "needs")
check.usage(function() flow.op("AOp", { run = f, needs = { [true] = "string" } }) end, "op", "needs")
