-- The virtual clock stands still while a request is pending, and jumps again afterwards.
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local from = flow.now()
local race = flow.when_any_finish { flow.http(server:url("/slow", { delay = 0.05 })), flow.with_delay(3600) }
race:wait()
check.equal(race.index, 1)
check.equal(flow.now() - from < 60, true)
flow.sleep(3600)
check.equal(flow.now() - from >= 3600, true)

-- Delays between attempts take no time.
local id = servers.id()
local run = flow.op("FetchOp", { retry = { attempts = 3, delay = 1000 }, run = function()
  return flow.http(server:url("/flaky", { id = id, times = 2 }))
end }):run()
check.equal(run.ok, true)
check.equal(#server:requests(id), 3)
check.equal(run.duration >= 2000, true)

-- So it is in flow.testing.
local testing = require "flow.testing"
run = testing.run(flow.op("RaceOp", function(ctx)
  local race = flow.when_any_finish { flow.http(server:url("/slow", { delay = 0.05 })), flow.with_delay(3600) }
  race:wait()
  ctx:set("index", race.index)
end), { http = "real" })
check.equal(run.data.index, 1)
