-- 100 kills at random moments, of those that send messages and of the process that takes them, lose none and deliver none twice.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local seed = tonumber(os.getenv "FLOWLUA_SEED") or os.time()
math.randomseed(seed)
local kills = os.getenv "FLOWLUA_SANITIZER" and 20 or 100

local script = kept.script [[
local TakeOp = flow.op("TakeOp", function(ctx)
  local list = {}
  repeat
    list[#list + 1] = ctx:wait_for("m", { type = "integer" })
  until list[#list] < 0
  flow.fs.write("list", table.concat(list, " "))
end)
local OtherOp = flow.op("OtherOp", function(ctx) effect("other " .. ctx:wait_for "o") end)
flow.new("both"):add_parallel(TakeOp, OtherOp):run():await()
]]
local function start(...)
  return flow.exec({ kept.binary(host.binary), ... }, { cwd = script.folder, check = false })
end
local id = script:run({ "--keep" }).stderr:match "^(r%w+) waits"

-- By number: whether it is known to have been sent.
local sent, number = {}, 0
local taker = script:start { "--resume", "--stay" }
for _ = 1, kills do
  number = number + 1
  local sender = start("--send", id, "m=" .. number)
  if math.random(2) == 1 then
    flow.sleep(math.random() * 0.05)
    flow.exec({ "kill", "-9", tostring(sender.pid) }, { check = false }):await()
    sent[number] = sender:await().status == 0
  else
    check.equal(sender:await().status, 0, "seed " .. seed)
    sent[number] = true
    flow.sleep(math.random() * 0.03)
    flow.exec({ "kill", "-9", tostring(taker.pid) }, { check = false }):await()
    taker:await()
    taker = script:start { "--resume", "--stay" }
  end
end
check.equal(start("--send", id, "m=-1", "o=1"):await().status, 0, "seed " .. seed)
local result = taker:await()
check.equal(result.status, 0, "seed " .. seed .. ": " .. result.stderr)

local last, found = 0, {}
for word in flow.fs.read(script.folder .. "/list"):gmatch "%S+" do
  local n = math.tointeger(word)
  if n > 0 then
    assert(n > last, ("seed %d: %d came after %d"):format(seed, n, last))
    found[n], last = true, n
  end
end
for n, is_known in ipairs(sent) do
  if is_known then assert(found[n], ("seed %d: %d was lost"):format(seed, n)) end
end
for _, line in ipairs(script:effects()) do check.equal(line, "other 1") end
