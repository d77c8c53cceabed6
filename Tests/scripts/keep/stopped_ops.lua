-- An op of a kept run that was stopped isn't counted as failed, and is executed again for that reason.
local check, host, flow = require "check", require "host", require "flow"

local folder = flow.fs.temp_dir()
flow.fs.write(folder .. "/s.lua", [[
  local flow = require "flow"
  local WaitOp = flow.op("WaitOp", function() if not os.getenv "AGAIN" then flow.sleep(60) end end)
  local BadOp = flow.op("BadOp", function(ctx) if not os.getenv "AGAIN" then ctx:fail "no" end end)
  local run = flow.new("two"):add_parallel(WaitOp, WaitOp:with { name = "PauseOp" }, BadOp):run()
  print(run.state)
  if not run.ok then os.exit(1, true) end
]])
local function run(words, before)
  return host.run("sh", { "-c", "cd \"$1\" && " .. "export " .. (before or "X=") .. "; exec \"$0\" " .. words, host.binary, folder })
end
check.equal(run("--keep s.lua").stdout, "failed\n")
local listed = run("--runs s.lua").stdout
check.contains(listed, "0 finished, 1 failed, 2 stopped")
local id = listed:match "\n(%S+)"
local shown = run("--show " .. id).stdout
check.match(shown, "%[WaitOp%] stopped after [^\n]*")
check.match(shown, "%[BadOp%] failed after [^\n]*: no\n")
check.contains(run("--why s.lua").stdout, "it was stopped", "it had failed: no")
local again = run("--resume s.lua", "AGAIN=1")
check.equal(again.stdout, "succeeded\n")
check.contains(again.stderr, ": 0 kept, 3 again: 2 were stopped, 1 had failed\n")
