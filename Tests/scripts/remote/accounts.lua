-- Accounts of a server have queues and nodes of their own: ops stay within one, and a wrong password is refused with the reason.
-- clock: real: other processes execute the ops
local check, host, remote = require "check", require "host", require "remote"

local server <close> = remote.server { config = [[
accounts {
  RENDER: { jetstream: enabled, users: [ { user: "render", password: "first" } ] }
  STATS: { jetstream: enabled, users: [ { user: "stats", password: "second" } ] }
}
]] }
local address = server.url:match "//(.*)"
local function log_in(user) server.url = "nats://" .. user .. "@" .. address end

local accounts = { { user = "render:first", name = "render" }, { user = "stats:second", name = "stats" } }
for _, account in ipairs(accounts) do
  log_in(account.user)
  server:join(account.name, "--tags", account.name)
end

-- Items that any node may execute, and an op that only a node of the other account could execute, at the same time.
for k, account in ipairs(accounts) do
  log_in(account.user)
  account.items = server:start [[
    local Op = flow.op("Op", { needs = { n = "integer" }, gives = { lane = "string" }, thread = "remote",
      run = function(ctx) ctx:set("lane", ctx.lane:match "^%w+") end })
    local list, seen = {}, {}
    for k = 1, 40 do list[k] = k end
    local run = flow.new("items"):data { ns = list }
      :add_grouped(Op, { input = "ns", as = "n", output = "lanes", max_concurrent = 4 }):run()
    for _, lane in ipairs(run.data.lanes) do seen[lane] = (seen[lane] or 0) + 1 end
    for lane, count in pairs(seen) do print(lane, count) end
  ]]
  account.other = server:start(([[
    local run = flow.new("f"):add(flow.op("Op", { thread = "remote", tags = %q, run = function() end })):run()
    print(run.state, run.error.message:match "no node that has joined .* executes it")
  ]]):format(accounts[3 - k].name), "--remote-timeout", "1")
end
for _, account in ipairs(accounts) do
  local items, other = account.items:await(), account.other:await()
  check.equal(items.stderr, "")
  check.equal(items.stdout, account.name .. "\t40\n")
  check.equal(other.stdout, ("failed\tno node that has joined nats://%s executes it\n"):format(address))
  log_in(account.user)
  local listed = host.run(host.binary, { "--remote", server.url, "--remote-check" })
  check.equal(listed.status, 0)
  check.match(listed.stdout, "^" .. account.name .. ": [^\n]*\n$")
end

-- The password of the other account. It isn't in the message.
log_in "render:second"
local reason = "nats://" .. address .. " refused the user or password: Authorization Violation\n"
local result = server:run [[
  print(flow.new("f"):add(flow.op("Op", { thread = "remote", run = function() end })):run().error.message)
]]
check.equal(result.stdout, reason)
for _, words in ipairs { { "--remote", server.url, "--remote-check" }, { "--join", server.url } } do
  local refused = host.run(host.binary, words)
  check.equal(refused.status, 1)
  check.equal(refused.stdout, "")
  check.match(refused.stderr, ": " .. reason:gsub("%p", "%%%0") .. "$")
end
