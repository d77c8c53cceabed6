-- A killed server that has forgotten the last numbers of its empty streams loses no item of the next script.
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
local store = flow.fs.temp_dir()
-- The reports about ops of a kept run go through a stream.
local function run() return server:run(op, "--keep", "--store", store).stdout end
local streams = server.folder .. "/store/jetstream/$G/streams/"
local function sh(text) assert(os.execute("cd '" .. streams .. "' && " .. text)) end

-- The files that the server has of the streams in the beginning, when they are empty again.
check.equal(run(), "succeeded\tnil\t10\n")
os.execute("kill " .. server.server.program.pid)
pcall(server.server.program.await, server.server.program)
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

check.equal(run(), "succeeded\tnil\t10\n")
forget()
check.equal(run(), "succeeded\tnil\t10\n")
