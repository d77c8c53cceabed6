-- A `__tostring` that doesn't end keeps neither a run nor a signal: the value is shown by its address.
-- clock: real: busy code is stopped by the machine's clock
local flow, check, host = require "flow", require "check", require "host"

local function endless()
  return setmetatable({}, { __tostring = function() while true do end end })
end

-- The code that stores the value is stopped by its timeout, and the log is written after that.
local SetOp = flow.op("SetOp", { timeout = 0.1, run = function(ctx) ctx:set("a", endless()) end })
check.equal(SetOp:run().error.kind, "timeout")

for name, body in pairs {
  value = function(ctx) ctx:set("a", endless()) end,
  nested = function(ctx) ctx:set("a", { 1, { endless(), [endless()] = 2 } }) end,
  cleanup = function(ctx) ctx:defer(function() ctx:set("a", endless()) end) end,
  wait = function(ctx)
    ctx:set("a", setmetatable({}, { __tostring = function() flow.sleep(0.01) while true do end end }))
  end,
} do
  local run = flow.op("TextOp", body):run()
  check.equal(run.state, "succeeded", name)
  check.contains(run:summary(), "table: 0x")
end
for _, thread in ipairs { "main", "worker" } do
  local run = flow.op("FailingOp", { thread = thread, run = function()
    error(setmetatable({}, { __tostring = function() while true do end end }))
  end }):run()
  check.equal(run.state, "failed", thread)
end

-- A text that waits, and one that takes its time, are whole.
local run = flow.op("SlowOp", function(ctx)
  ctx:set("waits", setmetatable({}, { __tostring = function() flow.sleep(0.01) return "waited" end }))
  ctx:set("works", setmetatable({}, { __tostring = function()
    local n = 0
    for _ = 1, 1e5 do n = n + 1 end
    return "worked"
  end }))
  ctx:set("fails", setmetatable({}, { __tostring = function() error "no" end }))
  ctx:set("counts", setmetatable({}, { __tostring = function() return 7 end }))
end):run()
check.contains(run:summary(), "\nwaits: waited\nworks: worked\nfails: table: 0x", "\ncounts: 7\n")

local SCRIPT = [[
  local flow = require "flow"
  io.stdout:setvbuf "no"
  local value = setmetatable({}, { __tostring = function()
    print "ready"
    while true do pcall(function() while true do end end) end
  end })
  local TextOp = flow.op("TextOp", function(ctx)
    ctx:defer(function() print "cleaned" end)
    %s
  end)
  TextOp:start()
]]
for _, body in ipairs { "ctx:set('a', value) flow.sleep(60)", "ctx:set('a', { { value } }) while true do end",
  "error(value)" } do
  for signal, status in pairs { INT = 130, TERM = 143 } do
    local result = host.signalled(host.binary, { "-e", SCRIPT:format(body) }, signal)
    check.equal(result.status, status, body)
    check.contains(result.stdout, "cleaned\n")
  end
end
