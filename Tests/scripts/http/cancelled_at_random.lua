-- 1,000 transfers that are cancelled at random moments leave no descriptor, no connection and no memory.
-- With arguments: how many, and a seed.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local seed = tonumber(arg[2]) or os.time()
local total = tonumber(arg[1]) or os.getenv "FLOWLUA_SANITIZER" and 200 or 1000
math.randomseed(seed)

local requests = {
  function() return { url = server:url "/echo" } end,
  function() return { url = server:url("/size", { size = math.random(1 << 20) }) } end,
  function() return { url = server:url("/size", { size = math.random(100000), chunked = 1 }) } end,
  function() return { url = server:url("/compressed", { size = math.random(1 << 20) }) } end,
  function() return { url = server:url "/echo", body = ("b"):rep(math.random(1 << 20)) } end,
  function() return { url = server:url "/never" } end,
  function() return { url = server:url("/drip", { pause = 0.0005 }) } end,
  function() return { url = server:url("/hops", { n = 5 }) } end,
  function() return { url = server:url("/reset", { phase = "body" }) } end,
  function() return { url = server:url("", nil, "refused") } end,
  function() return { url = server:url("", nil, "resetting") } end,
  function() return { url = server:url("", nil, "full") } end,
  function() return { url = "http://localhost:" .. server.http .. "/echo" } end,
  function() return { url = server:url("/size", { size = 100000 }), stream = true } end,
  function() return { url = server:url "/echo", files = { a = { body = "x", name = "a" } } } end,
}
local outcomes = { succeeded = 0, failed = 0, cancelled = 0 }
local function round(count)
  local tasks = {}
  for i = 1, count do
    local task = flow.http(requests[math.random(#requests)]())
    tasks[i] = flow.spawn(function()
      flow.sleep(math.random() < 0.2 and 0 or math.random() * 0.02)
      task:cancel()
      task:wait()
      outcomes[task.state] = outcomes[task.state] + 1
    end)
    if math.random() < 0.3 then flow.sleep(0) end
  end
  for _, task in ipairs(tasks) do task:await() end
end

round(50)
collectgarbage()
local before = servers.descriptors()
for _ = 1, total / 50 do round(50) end
collectgarbage()
collectgarbage()
check.equal(outcomes.succeeded + outcomes.failed + outcomes.cancelled, total + 50)
check.equal(outcomes.cancelled > total / 10, true, "cancelled")
-- The open connections are kept for later requests: as many as there were requests at a time, at most.
servers.eventually(function() return server:state().open <= 50 end, "the end of connections, seed " .. seed)
check.equal(servers.descriptors() <= before + 50, true, "descriptors, seed " .. seed)
-- No coroutine waits.
local alive = 0
for _, object in pairs(debug.getregistry()) do
  if type(object) == "thread" and coroutine.status(object) == "suspended" then alive = alive + 1 end
end
check.equal(alive <= 1, true, alive .. " coroutines, seed " .. seed)
check.equal(flow.http(server:url("/reply", { body = "well" })):await().body, "well")
