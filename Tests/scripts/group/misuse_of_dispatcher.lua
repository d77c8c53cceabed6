-- flow.dispatcher reads its options at the call.
local flow, check = require "flow", require "check"
check.usage(function() flow.dispatcher() end, "dispatcher", "#1", "table")
check.usage(function() flow.dispatcher(42) end, "dispatcher", "#1", "table", "number")
check.usage(function() flow.dispatcher {} end, "dispatcher", "input")
check.usage(function() flow.dispatcher { output = "x" } end, "dispatcher", "input")
check.usage(function() flow.dispatcher { input = 42 } end, "dispatcher", "input", "string")
for field, values in pairs {
  output = { 42, {}, true }, as = { 42, {} }, collect = { true, print }, failures = { 1, {} },
  max_concurrent = { 0, -1, 1.5, "3", {}, 0 / 0, true }, allow_failure = { 1, "yes", {} },
  allow_empty = { 0, "no" },
} do
  for _, value in ipairs(values) do
    check.usage(function() flow.dispatcher { input = "list", [field] = value } end, "dispatcher", field)
  end
end
for _, unknown in ipairs { "maxConcurrent", "inputs", "Output", "max_concurrency", "key" } do
  check.usage(function() flow.dispatcher { input = "list", [unknown] = 1 } end, "dispatcher", unknown)
end
check.usage(function() flow.dispatcher { "list" } end, "dispatcher")
