-- A node that stands still is soon given no ops: another one executes them without waiting for the end of a lease.
-- clock: real: other processes execute the ops, and requests for ops end
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join("frozen"):signal "STOP"
local function consumer()
  local name = server:request "$JS.API.CONSUMER.NAMES.FLOWLUA_WORK":match '"consumers":%["([^"]+)"'
  return server:request("$JS.API.CONSUMER.INFO.FLOWLUA_WORK." .. name)
end
repeat flow.sleep(0.1) until consumer():find('"num_waiting":0', 1, true)
local awake = server:join "awake"
local result = server:run [[
  local Op = flow.op("Op", { thread = "remote", run = function() end })
  print(flow.new("few"):add_parallel(Op, Op, Op):run().state)
]]
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\n")
-- Each message was handed out once.
local state = consumer()
check.equal(state:match '"delivered":{"consumer_seq":(%d+)', state:match '"delivered":{"consumer_seq":%d+,"stream_seq":(%d+)')
awake:signal "TERM"
