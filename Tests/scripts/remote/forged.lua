-- Garbage and forged messages of another client, and a node that lies about its slots or keeps what it takes: no item is lost.
-- clock: real: other processes execute the ops, and a lease ends
-- python: nats
local check, flow, nats, remote = require "check", require "flow", require "nats", require "remote"
local servers = require "servers"

local server <close> = remote.server()
local client <close> = nats.client(server.url)
local seed = os.time()
math.randomseed(seed)

local op = [[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer", notes = "string" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx)
      local file = assert(io.open(ctx:get "notes", "a"))
      file:write(ctx:get "n", "\n")
      file:close()
      ctx:set("r", ctx:get "n" * 2)
    end,
  })
  local list = {}
  for k = 1, 40 do list[k] = k end
  local run = flow.new("f"):data { ns = list, notes = NOTES }
    :add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 40 }):run()
  local good, lanes = 0, {}
  for k, r in ipairs(run.data.rs or {}) do if r == 2 * k then good = good + 1 end end
  for _, event in ipairs(run:events()) do
    if event.kind == "finish" and event.index > 0 then lanes[event.lane:match "^%w+"] = true end
  end
  print(run.state, run.error and run.error.message, good, next(lanes), next(lanes, (next(lanes))))
]]
local function start(notes)
  local script = server:start((op:gsub("NOTES", ("%q"):format(server.folder .. "/" .. notes))))
  servers.eventually(function()
    local ok, stream = pcall(client.stream, client, { name = "FLOWLUA_WORK" })
    return ok and stream.state.messages > 0
  end, "jobs in the queue")
  return script
end
-- How often items have begun.
local function begun(notes)
  local count = 0
  for _ in io.lines(server.folder .. "/" .. notes) do count = count + 1 end
  return count
end

-- It takes jobs, as if it had the slots for them, and does nothing with them.
local script = start "taken"
local consumer = client:consumers { stream = "FLOWLUA_WORK" }.consumers[1].name
local compatibility, version, lua = consumer:match "^(%d+%-(.+)%-([%d_]+))%-%+any$"
check.equal(#client:take { stream = "FLOWLUA_WORK", consumer = consumer, count = 100000 }.subjects > 0, true)
-- It says that it is there: with 100,000 workers, with more than a number can be, and as the other node.
local function hello(id, name, workers)
  return string.pack("s1s1s1s1s1", id, name, compatibility, version:gsub("_", "."), (lua:gsub("_", "."))) ..
    workers .. workers .. "\0\0" .. "\0"
end
local function lie()
  for _, bytes in ipairs {
    hello("liar", "liar", "\xA0\x8D\x06"), hello("most", "most", ("\xFF"):rep(9) .. "\x01"), hello("m1", "m1", "\0"),
  } do
    client:publish { subject = "flowlua.here", data = nats.base64(bytes) }
  end
end
lie()
server:join "m1"
lie()
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t40\tm1\tnil\n")
check.equal(begun "taken", 40)

-- Garbage, and messages that begin like true ones, on all subjects of a script whose jobs wait.
server.nodes[1]:signal "TERM"
server.nodes[1]:wait()
script = start "forged"
local number = client:stream { name = "FLOWLUA_WORK" }.state.first_seq
local message = client:message { stream = "FLOWLUA_WORK", number = number }
local id = message.subject:match "%.(%x+)$"
local work = message.subject:gsub("%x+$", "")
local function random(count)
  local bytes = {}
  for k = 1, count do bytes[k] = string.char(math.random(0, 255)) end
  return table.concat(bytes)
end
for _, subject in ipairs {
  work .. id, work .. ("0"):rep(32), work .. "x", "flowlua.work.other.+any." .. id, "flowlua.news." .. id, "flowlua.begun." .. id,
  "flowlua.stop." .. work:match "^flowlua%.work%.([^.]+)" .. "." .. id, "flowlua.ask." .. id, "flowlua.here", "flowlua.who",
} do
  for _, data in ipairs {
    "", nats.base64 "\0\2", nats.base64(random(40)), nats.base64("\0\2" .. random(60)), nats.base64("\1" .. random(60)),
    nats.base64("\1value-" .. ("0"):rep(64)), message.data:sub(1, 40), message.data:sub(1, #message.data // 8 * 4),
  } do
    client:publish { subject = subject, data = data, times = 3, headers = { ["Nats-Expected-Stream"] = "FLOWLUA_WORK", x = "y" } }
    client:publish { subject = subject, data = data }
  end
end
-- A whole job, for a script that isn't there.
client:publish { subject = work .. ("a"):rep(32), data = message.data }
server:join "m2"
result = script:await()
local story = ("from seed %d: %s"):format(seed, result.stderr)
check.equal(result.stderr, "", story)
check.equal(result.stdout, "succeeded\tnil\t40\tm2\tnil\n", story)
check.equal(begun "forged", 40, story)
-- The node drops what it can't execute.
servers.eventually(function()
  local left = client:consumers { stream = "FLOWLUA_WORK" }.consumers
  for _, each in ipairs(left) do if each.name == consumer then return each.waiting == 0 and each.handed_out == 0 end end
end, "garbage is dropped")
