-- Nodes whose clocks are an hour before and after the script's execute its ops; its log has its own times.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local can = flow.exec({ "faketime", "-v" }, { check = false })
if not pcall(can.await, can) then
  return check.skip "no package faketime"
end

local server <close> = remote.server()
for name, shift in pairs { early = "-1h", late = "+1h" } do
  server:join({ name = name, before = { "env", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-f", shift } }, "--tags", name)
end
local result = server:run [[
  local ops = {}
  for _, name in ipairs { "early", "late" } do
    ops[#ops + 1] = flow.op("WorkOp", {
      needs = { n = "integer" }, gives = { there = "integer" }, thread = "remote", tags = name, timeout = 60,
      run = function(ctx)
        ctx:log "begun"
        require "flow".sleep(0.01)
        ctx:set("there", os.time())
      end,
    })
  end
  local before = os.time()
  for _, Op in ipairs(ops) do
    local run = flow.new("work"):data { ns = { 1, 2, 3, 4, 5, 6 } }
      :add_grouped(Op, { input = "ns", as = "n", output = "there", max_concurrent = 4 }):run()
    local now = os.time()
    print(run.state, run.error)
    for _, there in ipairs(run.data.there) do
      local shift = Op.tags == "early" and -3600 or 3600
      assert(there >= before + shift - 5 and there <= now + shift + 5, there - now)
    end
    -- Times since the script's start.
    local previous = 0
    for _, event in ipairs(run:events()) do
      assert(event.time >= previous - 0.5 and event.time <= now - before + 60, event.time)
      previous = event.time
    end
  end
]]
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\nsucceeded\tnil\n")
