-- A response that becomes large when it is decompressed, and an event without an end, fail alone under `--memory-limit`.
-- clock: real: a server is outside
local servers, host, check = require "servers", require "host", require "check"
local server <close> = servers.hostile()
local result = host.run(host.binary, { "--memory-limit", "32M", "-e", ([[
  local flow = require "flow"
  local request = flow.http.get(%q)
  request:wait()
  print(request.error.message:match "more than %%d+ bytes" ~= nil, collectgarbage "count" < 32 << 10)
  print(flow.http.get(%q):await().body:byte())]]):format(
  server:url("/compressed", { size = 1 << 30 }), server:url("/compressed", { size = 1 << 20 })) })
check.equal(result.stderr, "")
check.equal(result.stdout, "true\ttrue\n120\n")

-- An event may have no end: its line, or its data in many lines. Several bodies together exceed the limit, too.
for _, part in ipairs { "line", "data" } do
  result = host.run(host.binary, { "--memory-limit", "32M", "-e", ([[
    local flow = require "flow"
    local response = flow.http { url = %q, stream = true }:await()
    print(pcall(function() for event in response:events() do print(event.event) end end))
    print(flow.http.get(%q):await().body:byte())]]):format(
    server:url("/endless", { part = part }), server:url("/compressed", { size = 1 << 20 })) })
  check.equal(result.stderr, "")
  check.equal(result.stdout, "false\tnot enough memory\n120\n")
end
result = host.run(host.binary, { "--memory-limit", "64M", "-e", ([[
  local flow = require "flow"
  local requests = {}
  for i = 1, 8 do requests[i] = flow.http.get(%q) end
  local results = flow.when_all_finish(requests):await()
  local kinds = {}
  for _, error in pairs(results.errors) do kinds[error.kind] = true end
  print(kinds.memory, next(kinds, "memory"))]]):format(server:url("/compressed", { size = 40 << 20 })) })
check.equal(result.stderr, "")
check.equal(result.stdout, "true\tnil\n")
