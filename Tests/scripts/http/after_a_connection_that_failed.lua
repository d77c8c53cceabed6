-- A request is noticed whose descriptor has the number of a connection that was never made.
-- clock: real: a server is outside
local flow, check = require "flow", require "check"
local servers = require "servers"
local server <close> = servers.hostile()
local full = server:url("/", nil, "full"):gsub("^https", "http")

local function given_up(options)
  options.url = full
  local task = flow.http(options)
  if options.timeout == 1000 then
    flow.sleep(0.05)
    task:cancel()
  end
  task:wait()
  check.equal(task.completed and task.error == nil, false)
end

-- The library finds out by itself after 10 s.
for round, options in ipairs {
  { timeout = 0.05 }, { connect_timeout = 0.05 }, { timeout = 1000 }, { timeout = 0.05 },
} do
  for _ = 1, 3 do given_up { timeout = options.timeout, connect_timeout = options.connect_timeout } end
  local tasks = {}
  for i = 1, 4 do
    local port = round % 2 == 0 and "other" or "http"
    tasks[i] = flow.http { url = server:url("/slow", { delay = 0.05 }, port), timeout = 9 }
  end
  for _, task in ipairs(tasks) do check.equal(task:await().body, "slow") end
end
