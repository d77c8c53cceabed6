-- A small response that becomes a large one when it is decompressed fails alone under `--memory-limit`.
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
