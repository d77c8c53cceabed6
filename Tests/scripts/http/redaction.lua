-- Query values, credentials in addresses and secrets are redacted in logs, summaries, errors and events.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local token = flow.secret "token-of-the-test"
local function url(path, query)
  return (server:url(path, query):gsub("http://", "http://user:hunter-two@"))
end
local FetchOp = flow.op("FetchOp", function(ctx, request)
  local res = flow.http(request):await()
  ctx:set("body", res.body)
  ctx:set("token", token)
  ctx:log("the token is token-of-the-test")
end)
local shown = {}
local function fetch(request)
  local run = FetchOp(request):run()
  shown[#shown + 1] = run:summary()
  shown[#shown + 1] = flow.json.encode(run:events())
  if run.error then
    for _, text in ipairs { tostring(run.error), run.error.message, run.error.traceback or "" } do
      shown[#shown + 1] = text
    end
  end
  return run
end

local run = fetch { url = url("/reply", { key = "query-value", body = "fine" }), auth = token,
  query = { password = "other-value" }, headers = { ["X-Api-Key"] = token } }
check.equal(run.ok, true)
local place = "127.0.0.1:" .. server.http
check.contains(run:summary(), "[FetchOp] GET http://", place .. "/reply", "key=<redacted>", "password=<redacted>", " -> 200 in ",
  ", 4 B")
-- Failures.
run = fetch { url = url("/reply", { key = "query-value", status = 500 }), auth = token }
check.contains(run:summary(), "-> 500 in ", "DidFinish: withError: ")
fetch { url = url("/reset", { key = "query-value" }), auth = token }
fetch((url("/", { key = "query-value" }):gsub(":" .. server.http, ":" .. server.refused)))
fetch { url = url("/never", { key = "query-value" }), timeout = 0.05 }
fetch { url = url("/loop", { key = "query-value" }) }
fetch { url = url("/redirect", { to = url("/reply", { key = "query-value", status = 404 }) }) }
fetch { url = url("/reply", { key = "query-value" }), proxy = "http://proxy:hunter-two@127.0.0.1:" .. server.refused }
fetch { url = url("/raw", { data = "token-of-the-test", key = "query-value" }), auth = token }

for _, text in ipairs(shown) do
  check.lacks(text, "query-value", "hunter-two", "other-value", "token-of-the-test", "dXNlcjpodW50ZXI")
end

-- A secret in a field of the query, in an address, in a path.
run = FetchOp({ url = server:url "/echo", query = { token = token } }):run()
check.equal(run.ok, true)
check.lacks(run:summary(), "token-of-the-test")

-- Nor its form in an address.
local spaced = flow.secret "a secret/with spaces"
run = flow.ops.HTTPOp { url = "http://" .. place .. "/files/{secret}", into = "page" }:run { secret = spaced }
shown = { run:summary(), tostring(run.error), flow.json.encode(run:events()) }
run = flow.op("QueryOp", { gives = { url = "string" }, run = function(ctx)
  ctx:set("url", flow.http { url = server:url "/echo", query = { key = spaced } }:await().url)
end }):run()
check.equal(run.ok, true)
shown[#shown + 1] = run:summary()
shown[#shown + 1] = flow.json.encode(run:events())
for _, text in ipairs(shown) do
  check.lacks(text, "secret/with", "secret%2Fwith", "secret%2fwith", "with%20spaces")
end

-- It did arrive.
local seen = flow.http { url = server:url "/echo", auth = token, query = { key = token } }:await():json()
check.equal(seen.headers.authorization, "Bearer token-of-the-test")
check.same(seen.query.key, { "token-of-the-test" })

-- A misuse doesn't show the secret either.
check.lacks(tostring(check.raises(function()
  flow.http { url = server:url "/echo", auth = flow.secret "token-of\nthe-test" }
end)), "the-test")
-- Nor does what nobody observed.
local host = require "host"
local result = host.script(([[
  local flow = require "flow"
  flow.http { url = %q, auth = flow.secret "token-of-the-test" }:wait()
  error(flow.http { url = %q, auth = flow.secret "token-of-the-test" }:await())
]]):format(url("/reply", { status = 404, key = "query-value" }), url("/reset", { key = "query-value" })))
check.equal(result.status, 1)
check.lacks(result.stderr, "query-value", "hunter-two", "token-of-the-test")

-- A URL that can't be read: its password may have any byte.
for _, text in ipairs { "http://user:hunter/two@a.example", "http://user:hunter#two@a.example:x/", "user:hunter/two@a" } do
  local ok, problem = pcall(flow.http, text)
  check.equal(ok, false, text)
  check.contains(problem, "<redacted>@a")
  check.equal(tostring(problem):find("two", 1, true), nil, text)
  check.equal(tostring(problem):find("hunter", 1, true), nil, text)
end
