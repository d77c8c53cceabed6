-- A killed server that has forgotten the last numbers of its empty streams gets items and results with them again: none is lost.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join "m1"
local op = [[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx) ctx:set("r", ctx:get "n" * 2) end,
  })
  local function work()
    local list = {}
    for k = 1, 10 do list[k] = k end
    local run = flow.new("work"):data { ns = list }
      :add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 2 }):run()
    print(run.state, run.error, run.data.rs and #run.data.rs)
  end
  work()
]]
local streams = server.folder .. "/store/jetstream/$G/streams/"
local function sh(text) assert(os.execute("cd '" .. streams .. "' && " .. text)) end

-- What the server has of the streams in the beginning, when they are empty again.
check.equal(server:run(op).stdout, "succeeded\tnil\t10\n")
server:kill()
for _, stream in ipairs { "FLOWLUA_WORK", "FLOWLUA_NEWS" } do sh(("cp -r %s/msgs ../%s"):format(stream, stream)) end
server:restart()

-- The server writes the numbers of an empty stream to the disk at times; what consumers have had it writes more often.
local function forget()
  server:kill()
  for _, stream in ipairs { "FLOWLUA_WORK", "FLOWLUA_NEWS" } do
    sh(("rm -r %s/msgs && cp -r ../%s %s/msgs"):format(stream, stream, stream))
  end
  server:restart()
end

-- For the next script, and for one that was there before.
check.equal(server:run(op).stdout, "succeeded\tnil\t10\n")
forget()
check.equal(server:run(op).stdout, "succeeded\tnil\t10\n")
local running = server:start(op .. ([[
  report()
  while not io.open(%q) do flow.sleep(0.01) end
  work()
]]):format(server.folder .. "/go"))
server:wait_for_report(running)

-- Whether the next message of a stream has a number that the consumer hasn't had which was made last: the server may have
-- forgotten as well that those of earlier scripts were removed.
local function continues(stream)
  local state = flow.json.decode(server:request("$JS.API.STREAM.INFO." .. stream)).state
  local consumers = flow.json.decode(server:request("$JS.API.CONSUMER.LIST." .. stream)).consumers
  table.sort(consumers, function(a, b) return a.created < b.created end)
  return state.last_seq >= consumers[#consumers].delivered.stream_seq
end
forget()
-- Until the script has connected again, and has seen to the numbers.
require "servers".eventually(function() return continues "FLOWLUA_WORK" and continues "FLOWLUA_NEWS" end, "the numbers are there")
io.open(server.folder .. "/go", "w"):close()
local result = running:await()
check.equal(result.stderr, "")
check.equal(result.stdout, ("succeeded\tnil\t10\n"):rep(2))
