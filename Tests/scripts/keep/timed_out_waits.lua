-- A wait for a message that has timed out is over, also in the processes that continue the op; an op that has failed waits again.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local function send(script, ...)
  local list = flow.exec({ kept.binary(host.binary), "--runs" }, { cwd = script.folder }):await().stdout
  local result = flow.exec({ kept.binary(host.binary), "--send", list:match "\n(r%w+) ", ... },
    { cwd = script.folder, check = false }):await()
  check.equal(result.status, 0, result.stderr)
end

-- The first wait was over in another process: a message for it comes too late, and no list has it.
local script = kept.script [[
local AskOp = flow.op("AskOp", function(ctx)
  local ok, problem = pcall(ctx.wait_for, ctx, "clerk", { timeout = 0.2 })
  effect(ok or problem.kind)
  if ok or problem.kind ~= "timeout" then error(problem) end
  effect(ctx:wait_for "boss")
end)
flow.new("release"):add(AskOp):run()
]]
script:expect(75, { "--keep" }, "cancelled")
flow.sleep(0.3)
local text = script:expect(75, { "--resume" }, "timeout")
check.contains(text, "waits for <boss>")
check.equal(text:find("<clerk>", 1, true), nil)
send(script, "clerk=late", "boss=yes")
script:expect(0, { "--resume" }, "timeout", "yes")

-- An op that has failed because of it, and attempts of one process, wait again.
script = kept.script [[
local AskOp = flow.op("AskOp", { retry = { attempts = 2, delay = 0 }, run = function(ctx)
  effect(ctx.attempt)
  effect(ctx:wait_for("clerk", { timeout = 0.2 }))
end })
flow.spawn(function() flow.sleep(tonumber(os.getenv "WORK") or 0) end)
flow.new("release"):add(AskOp):run()
]]
script:expect(1, { "--keep", environment = { WORK = 1 } }, "1", "2")
send(script, "clerk=yes")
script:expect(0, { "--resume" }, "1", "yes")
