-- Wrong retries and timeouts are errors in each place that accepts them.
local flow, check = require "flow", require "check"
local AnOp = flow.op("AnOp", function() end)
local nan, huge = 0 / 0, math.huge
local places = {
  op = function(policy)
    policy.run = print
    flow.op("AnOp", policy)
  end,
  with = function(policy) AnOp:with(policy) end,
  add = function(policy) flow.new("f"):add(AnOp, policy) end,
  add_finally = function(policy) flow.new("f"):add_finally(AnOp, policy) end,
}
local function refused(make, ...)
  for name, place in pairs(places) do
    local raised = check.raises(function() place(make()) end, "'" .. name .. "'", ...)
    check.equal(raised.kind, "usage")
    check.contains(raised.message, "misuse_of_policies.lua:")
  end
end

for _, value in ipairs { -1, 0, -0.0, nan, huge, -huge } do
  refused(function() return { timeout = value } end, "field 'timeout'", "finite", "greater than 0")
end
for _, value in ipairs { "5", true, {}, print } do
  refused(function() return { timeout = value } end, "field 'timeout'", "number expected", type(value))
end

for _, value in ipairs { -1, -huge, nan } do
  refused(function() return { grace = value } end, "field 'grace'", "at least 0", "math.huge")
end
refused(function() return { grace = "5" } end, "field 'grace'", "number expected", "string")
AnOp:with { grace = 0 }
AnOp:with { grace = huge }

for _, value in ipairs { 0, -1, 1.5, nan, huge, -huge, 2.0 ^ 63 } do
  refused(function() return { retry = value } end, "field 'retry'", "number of attempts")
  refused(function() return { retry = { attempts = value } } end, "'retry.attempts'", "integer")
end
for _, value in ipairs { "3", true, print } do
  refused(function() return { retry = value } end, "field 'retry'", "number of attempts", type(value))
end
refused(function() return { retry = {} } end, "'retry.attempts'", "nil")
refused(function() return { retry = { 3 } } end, "named by strings")
refused(function() return { retry = { attempts = 3, atempts = 4 } } end, "'retry.atempts'", "'attempts'")
for _, field in ipairs { "delay", "max_delay", "factor" } do
  for _, value in ipairs { -1, nan, huge, -huge } do
    refused(function() return { retry = { attempts = 3, [field] = value } } end,
      "'retry." .. field .. "'", "finite", "at least 0")
  end
  refused(function() return { retry = { attempts = 3, [field] = "1" } } end,
    "'retry." .. field .. "'", "number", "string")
end
for _, value in ipairs { -0.1, 1.1, nan, huge } do
  refused(function() return { retry = { attempts = 3, jitter = value } } end,
    "'retry.jitter'", "from 0 to 1")
end
refused(function() return { tiemout = 5 } end, "'tiemout'", "'timeout'")
refused(function() return { thread = "other" } end, "field 'thread'")
check.usage(function() flow.new("f"):add(AnOp, 5) end, "'add'", "#2", "table", "number")
check.usage(function() AnOp:with() end, "'with'", "#1", "table")
check.usage(function() AnOp:with { name = "" } end, "'with'", "'name'", "non-empty")
check.usage(function() AnOp:with { run = print } end, "'with'", "'run'")

-- The largest that are allowed do no harm.
local BigOp = AnOp:with { timeout = 1e308, retry = { attempts = math.maxinteger, delay = 1e308 } }
assert(BigOp:run().ok)
for _, value in ipairs { -1, nan, huge, -huge } do
  check.usage(function() flow.sleep(value) end, "'sleep'", "#1", "finite")
  check.usage(function() BigOp:run():wait(value) end, "'wait'", "#1", "finite")
end
