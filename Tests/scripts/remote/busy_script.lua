-- A script that is too busy to reply to nodes loses no op: a node returns it, and the script sends it again.
-- clock: real: other processes execute the ops, and wait for a reply
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
local script = server:start(([[
  local Op = flow.op("Op", { thread = "remote", gives = { r = "integer" }, run = function(ctx) ctx:set("r", 7) end })
  local run = flow.new("f"):add(Op):start()
  -- The op is in the queue, for the first node.
  local function is_sent()
    local pipe <close> = io.popen("ls %s/store/jetstream/*/streams/FLOWLUA_WORK/obs 2>&1")
    return pipe:read("a"):find("any", 1, true)
  end
  repeat flow.sleep(0.01) until is_sent()
  flow.sleep(0.2)
  -- The main thread replies to nobody meanwhile.
  os.execute("touch %s/busy; while ! test -e %s/free; do sleep 0.05; done")
  run:wait()
  print(run.state, run.data.r)
]]):format(server.folder, server.folder, server.folder))
while not io.open(server.folder .. "/busy") do flow.sleep(0.01) end
server:join "m1"
-- The node asks for 3 seconds; then the report that it doesn't execute the op is in the stream.
local function reports()
  return tonumber(server:request "$JS.API.STREAM.INFO.FLOWLUA_NEWS":match '"last_seq":(%d+)')
end
while reports() == 0 do flow.sleep(0.05) end
io.open(server.folder .. "/free", "w"):close()
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\t7\n")
