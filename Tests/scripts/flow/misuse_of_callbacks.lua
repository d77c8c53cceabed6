-- :will_start and :did_finish accept only functions.
local flow, check = require "flow", require "check"
local blueprint = flow.new("misuse")
for _, method in ipairs { "will_start", "did_finish" } do
  check.usage(function() blueprint[method](blueprint) end, method, "#1", "function")
  check.usage(function() blueprint[method](blueprint, "text") end, method, "#1", "function", "string")
  check.usage(function() blueprint[method](blueprint, {}) end, method, "#1", "function", "table")
end
