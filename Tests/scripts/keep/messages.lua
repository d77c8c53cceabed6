-- A kept run that waits for nothing but messages ends with status 75 and says how it continues; `--send` is never lost.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local script = kept.script [[
local BuildOp = flow.op("BuildOp", function() effect "built" end)
local AskOp = flow.op("AskOp", function(ctx)
  effect "asked"
  local ok = ctx:wait_for("approved", { type = "boolean", ask = "Publish 1.2?" })
  effect(ok)
  effect(ctx:wait_for "note")
  effect(ctx:wait_for "note")
end)
local PublishOp = flow.op("PublishOp", function() effect "published" end)
local run = flow.new("release"):add(BuildOp):add(AskOp):add(PublishOp):run()
if not run.ok then error(run.error) end
]]

local function command(words)
  local argv = { kept.binary(host.binary), table.unpack(words) }
  local result = flow.exec(argv, { cwd = script.folder, check = false }):await()
  return result
end

-- It ends, and nothing is undone.
local result = script:run { "--keep" }
check.equal(result.status, 75, result.stderr)
local id = result.stderr:match "^(r%w+) waits for"
check.equal(result.stderr, ("%s waits for <approved> (Publish 1.2?): flowlua --send %s approved=true --resume %s\n")
  :format(id, id, script.path))
script:expect_effects("asked", "built")

-- Lists show what it waits for.
check.contains(command({ "--runs" }).stdout,
  ("\n%s waits for <approved> (Publish 1.2?): flowlua --send %s approved=true\n"):format(id, id))
check.contains(command({ "--show", id }).stdout, id .. " waits for <approved> (Publish 1.2?)")

-- Wrong words are refused before anything is written.
for words, text in pairs {
  ["--send " .. id .. " approved=maybe"] = "run " .. id .. " waits for <approved> of type boolean, not 'maybe'",
  ["--send rzzzz approved=true"] = "there is no run 'rzzzz'",
  ["--send " .. id] = "option '--send' needs messages: --send " .. id .. " name=value",
  ["--send"] = "option '--send' needs a run and messages",
  ["--send " .. id .. " a=1 --runs"] = "option '--send' can't be combined with other commands on the store",
  ["--send " .. id .. " a=1 --send " .. id .. " a=1"] = "option '--send' is there twice",
} do
  local list = {}
  for word in words:gmatch "%S+" do list[#list + 1] = word end
  result = command(list)
  check.equal(result.status, 2, words)
  check.contains(result.stderr, text)
end

-- A message before its wait, and one that is sent together with the continuation, in their order.
check.equal(command({ "--send", id, "note=first" }).status, 0)
check.equal(command({ "--send", id, "approved=true", "--resume", script.path }).status, 75)
script:expect_effects("asked", "true", "first")
-- A taken message is there again for the op that is executed again; nothing else is.
check.equal(command({ "--resume", script.path }).status, 75)
script:expect_effects("asked", "true", "first")
check.equal(command({ "--send", id, "note=second", "note=third", "--resume", script.path }).status, 0)
script:expect_effects("asked", "true", "first", "second", "published")
check.equal(command({ "--send", id, "note=x" }).status, 2)

-- A process that stays takes what another one sends.
local waiting = script:start { "--keep", "--stay" }
local function sent(words)
  local again
  kept.waits(function()
    local list = command({ "--runs" }).stdout
    again = list:match "(r%w+) waits for <approved>"
    return again ~= nil
  end)
  return command({ "--send", again, table.unpack(words) })
end
check.equal(sent({ "approved=no", "note=a", "note=b" }).status, 0)
result = waiting:await()
check.equal(result.status, 0, result.stderr)
script:expect_effects("built", "asked", "false", "a", "b", "published")

-- A killed process loses no message, whether it was waiting or not.
waiting = script:start { "--keep", "--stay" }
local killed
kept.waits(function()
  killed = command({ "--runs" }).stdout:match "(r%w+) waits for <approved>"
  return killed
end)
flow.exec({ "kill", "-9", tostring(waiting.pid) }):await()
waiting:wait()
check.equal(command({ "--send", killed, "approved=true", "note=1" }).status, 0)
check.equal(command({ "--send", killed, "note=2" }).status, 0)
check.equal(command({ "--resume", script.path }).status, 0)
script:expect_effects("built", "asked", "asked", "true", "1", "2", "published")

-- A timeout counts from the first process that has waited on.
script = kept.script [[
local AskOp = flow.op("AskOp", function(ctx)
  local ok, problem = pcall(ctx.wait_for, ctx, "approved", { timeout = 0.5 })
  effect(problem)
end)
flow.new("release"):add(AskOp):run()
]]
check.equal(script:run({ "--keep" }).status, 75)
script:effects()
flow.sleep(0.6)
check.equal(script:run({ "--resume" }).status, 0)
check.contains(script:effects()[1], "timed out after 0.5s")

-- Other work goes first: the process ends when nothing else is left.
script = kept.script [[
local AskOp = flow.op("AskOp", function(ctx) effect(ctx:wait_for "x") end)
local SlowOp = flow.op("SlowOp", function(ctx) flow.sleep(0.3) effect "slow" end)
flow.new("both"):add_parallel(AskOp, SlowOp):run()
]]
check.equal(script:run({ "--keep" }).status, 75)
script:expect_effects "slow"

-- A step of a machine waits as an op does, and another op of the script sends.
script = kept.script [[
local machine = flow.machine {
  name = "order", start = "ask", emit = function(result) return result end,
  flow.step("ask", { run = function(state, ctx) return ctx:wait_for "answer" end,
    flow.on("yes", flow.forward "done") }),
  flow.step("done", { run = function() effect "done" end, final = true }),
}
local run = machine:start {}
flow.op("SendOp", function() flow.send(run, "answer", "yes") end):run()
run:await()
]]
result = script:run { "--keep" }
check.equal(result.status, 0, result.stderr)
script:expect_effects "done"
