-- run: --ssh echo --hosts web1 --hosts web2 --hosts db1 uptime
-- run: --ssh echo --hsts web1 uptime
--
-- Runs a command on many hosts, five at a time, and shows what each has printed. The needs of the
-- flow are the options; `--help` lists them.
--
--   scripts/flowlua examples/fleet.lua --hosts web1 --hosts web2 uptime
local flow = require "flow"

local RunOp = flow.op("RunOp", {
  needs = { host = "string", ssh = "string", command = "string" }, gives = { output = "string" },
  primary_input = "host", timeout = 30,
  run = function(ctx)
    local result = flow.exec { ctx:get "ssh", ctx:get "host", ctx:get "command" }:await()
    ctx:set("output", result.stdout:gsub("\n$", ""))
  end,
})

local ShowOp = flow.op("ShowOp", function(ctx)
  local failed = {}
  for _, failure in ipairs(ctx:get "failures") do failed[failure.index] = failure.error end
  for i, host in ipairs(ctx:get "hosts") do
    print(host, failed[i] and "status " .. failed[i].status or ctx:get("outputs")[i])
  end
  if next(failed) then ctx:fail(#ctx:get "failures" .. " hosts have failed") end
end)

local fleet = flow.new("fleet")
  :needs {
    command = { "string", "The command" }, hosts = { "string[]", "A host, as ssh takes it" },
    ssh = { "string", "The program that reaches a host" },
  }
  :primary("command")
  :data { ssh = "ssh" }
  :add_grouped(RunOp, { input = "hosts", output = "outputs", failures = "failures",
    max_concurrent = 5, label = "host", allow_failure = true, absent = false })
  :add(ShowOp)

flow.main(fleet)
