-- Requests in tests get the responses of a table or function; one that isn't replaced is an error.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local url = "https://api.example/items"

-- The op sends this request; the test responds.
local function run(http, request, op_options)
  local response
  local RequestOp = flow.op("RequestOp", {
    timeout = op_options and op_options.timeout, retry = op_options and op_options.retry,
    run = function() response = flow.http(request or url):await() end,
  })
  local settled = testing.run(RequestOp, { http = http })
  return settled, response
end

-- A table of responses: JSON, bytes, headers, a status, a delay of the test's clock.
local settled, response = run { ["GET " .. url] = { json = { { id = 1 } }, delay = 50 } }
assert(settled.ok, settled.error)
check.equal(response.status, 200)
check.equal(response:json()[1].id, 1)
check.equal(response.headers["Content-Type"], "application/json")
check.equal(response.url, url)
check.equal(settled.duration, 50.0)
check.equal(response.elapsed, 50.0)
check.contains(settled:summary(), "GET https://api.example/items -> 200 in 50s, 10 B")
settled, response = run { ["GET " .. url] = {
  status = 201, body = "made\0", headers = { ["X-Id"] = 7, ["Set-Cookie"] = { "a", "b" } } } }
assert(settled.ok, settled.error)
check.equal(response.status, 201)
check.equal(response.body, "made\0")
check.equal(response.headers["x-id"], "7")
check.same(response:values "set-cookie", { "a", "b" })
settled, response = run { ["GET " .. url] = "just the body" }
assert(settled.ok, settled.error)
check.equal(response.body, "just the body")
-- URLs are compared as they are sent; without a query of its own, a key is for any.
settled = run({ ["GET https://api.example/"] = "root" }, "https://api.example")
assert(settled.ok, settled.error)
local query = { url = url, query = { page = 2 } }
settled, response = run({ ["GET " .. url] = "any", ["GET " .. url .. "?page=2"] = "second" }, query)
assert(settled.ok, settled.error)
check.equal(response.body, "second")
settled, response = run({ ["GET " .. url] = "any" }, query)
assert(settled.ok, settled.error)
check.equal(response.body, "any")

-- A function, for all requests or for one, gets the request; it may wait and fail.
local seen
local function keep(request)
  seen = request
  flow.sleep(5)
  return { json = { ok = true } }
end
for _, http in ipairs { keep, false } do
  settled, response = run(http or { ["POST " .. url] = keep }, {
    url = url, json = { a = 1 }, headers = { ["X-Id"] = "7" }, auth = flow.secret "token",
    idempotency_key = "k",
  })
  assert(settled.ok, settled.error)
  check.equal(response:json().ok, true)
  check.equal(settled.duration, 5.0)
  check.equal(seen.method, "POST")
  check.equal(seen.url, url)
  check.equal(seen.body, '{"a":1}')
  check.equal(seen.headers["x-id"], "7")
  check.equal(seen.headers["authorization"], "Bearer token")
  check.equal(seen.headers["content-type"], "application/json")
  check.equal(seen.headers["idempotency-key"], "k")
end
settled = run(function() error("no idea", 0) end)
check.equal(settled.error.message, "no idea")
settled = run(function(request) seen = request return "" end,
  { url = url, auth = { user = "me", password = "secret" }, form = { a = "b c" }, method = "PUT" })
assert(settled.ok, settled.error)
check.same(seen.auth, { user = "me", password = "secret" })
check.equal(seen.method, "PUT")
check.equal(seen.body, "a=b%20c")

-- Statuses are failures as usual, retries as usual, and so are broken connections.
settled = run { ["GET " .. url] = { status = 404, body = "no such item" } }
check.equal(settled.error.kind, "http")
check.equal(settled.error.status, 404)
check.equal(settled.error.body, "no such item")
local calls = 0
settled = run(function()
  calls = calls + 1
  if calls == 1 then return { status = 503, headers = { ["Retry-After"] = 30 } } end
  if calls == 2 then return { phase = "receive" } end
  return "done"
end, nil, { retry = { attempts = 5, delay = 1 } })
assert(settled.ok, settled.error)
check.equal(calls, 3)
check.equal(settled.duration, 31.0)
for phase, sent in pairs { resolve = false, connect = false, tls = false, send = true, receive = true } do
  settled = run({ ["GET " .. url] = { phase = phase } })
  check.equal(settled.error.kind, "network")
  check.equal(settled.error.phase, phase)
  check.equal(settled.error.sent, sent)
end
calls = 0
settled = run(function() calls = calls + 1 return { phase = "wait" } end,
  { url = url, body = "x" }, { retry = 3 })
check.equal(settled.error.kind, "network")
check.equal(calls, 1)
settled, response = run({ ["GET " .. url] = { status = 500 } }, { url = url, check = false })
assert(settled.ok, settled.error)
check.equal(response.status, 500)

-- Redirects lead to the next response; secrets stay with their origin.
settled, response = run({
  ["GET " .. url] = { status = 302, headers = { Location = "https://other.example/moved" } },
  ["GET https://other.example/moved"] = function(request)
    check.equal(request.headers.authorization, nil)
    return "there"
  end,
}, { url = url, auth = flow.secret "token" })
assert(settled.ok, settled.error)
check.equal(response.body, "there")
check.equal(response.url, "https://other.example/moved")
settled = run { ["GET " .. url] = { status = 302, headers = { Location = "/gone" } } }
check.equal(settled.error.kind, "usage")
check.contains(settled.error.message, "GET https://api.example/gone isn't replaced in this test")

-- Bodies go into files and streams.
local path = os.tmpname()
settled, response = run({ ["GET " .. url] = "into the file" }, { url = url, save = path })
assert(settled.ok, settled.error)
check.equal(response.saved, path)
local file <close> = assert(io.open(path))
check.equal(file:read "a", "into the file")
os.remove(path)
local chunks = {}
settled = testing.run(flow.op("StreamOp", function()
  local stream = flow.http { url = url, stream = true }:await()
  for event in stream:events() do chunks[#chunks + 1] = event.data end
  local large = flow.http { url = url .. "/large", stream = true }:await()
  local size = 0
  for chunk in large:chunks() do size = size + #chunk end
  chunks[#chunks + 1] = size
end), { http = {
  ["GET " .. url] = "data: one\n\ndata: two\n\n", ["GET " .. url .. "/large"] = ("x"):rep(1 << 20),
} })
assert(settled.ok, settled.error)
check.same(chunks, { "one", "two", 1 << 20 })
settled = run({ ["GET " .. url] = ("x"):rep(100) }, { url = url, max_bytes = 99 })
check.contains(settled.error.message, "max_bytes")
settled = run({ ["HEAD " .. url] = "no body" }, { url = url, method = "HEAD" })
assert(settled.ok, settled.error)

-- Limits and cancels; the limit of a request counts on the test's clock.
settled = run({ ["GET " .. url] = { delay = 1000 } }, { url = url, timeout = 60 })
check.equal(settled.error.kind, "timeout")
check.equal(settled.duration, 60.0)
settled = run(function() flow.sleep(1000) end, nil, { timeout = 30 })
check.equal(settled.error.kind, "timeout")
check.equal(settled.duration, 30.0)
local left
assert(testing.run(flow.op("LeaveOp", function() left = flow.http(url) end),
  { http = { ["GET " .. url] = { delay = 1000 } } }).ok)
check.equal(left.state, "cancelled")

-- Clients, HTTPOp, groups.
local api = flow.http.client { base = "https://api.example", rate = { 1, per = 3600 }, auth = "t" }
settled = testing.run(flow.op("ClientOp", function(ctx)
  ctx:set("a", api.get("/items"):await().body)
  ctx:set("b", api.get("/items"):await().body)
end), { http = function(request) return request.headers.authorization end })
assert(settled.ok, settled.error)
check.equal(settled.data.b, "Bearer t")
settled = testing.run(
  flow.new("pages"):add_grouped(
    flow.ops.HTTPOp { url = "https://api.example/{name}", into = "page" },
    { input = "names", output = "pages" }),
  { data = { names = { "a", "b c" } }, http = function(request) return { json = { request.url } } end })
assert(settled.ok, settled.error)
check.equal(settled.data.pages[2][1], "https://api.example/b%20c")

-- A request that isn't replaced is an error that names the line, the request and the option.
for _, http in ipairs { false, { ["POST " .. url] = "" } } do
  settled = run(http or nil, url .. "?key=hidden")
  check.equal(settled.error.kind, "usage")
  check.contains(settled.error.message, "requests.lua:10: GET https://api.example/items",
    "isn't replaced in this test: ", "testing.run")
  check.lacks(settled.error.message, "hidden")
end
settled = testing.run(flow.ops.HTTPOp { url = url })
check.equal(settled.error.kind, "usage")
local WorkerOp = flow.op("WorkerOp", {
  thread = "worker", run = function() flow.http("http://127.0.0.1:1/"):await() end })
settled = testing.run(WorkerOp, { http = keep })
check.equal(settled.error.kind, "usage")
check.contains(settled.error.message, "main thread")
check.equal(testing.run(WorkerOp, { http = "real" }).error.kind, "network")
check.equal(run("real", "http://127.0.0.1:1/").error.kind, "network")

-- Wrong responses, and wrong options.
local function wrong(value, ...)
  settled = run(function() return value end)
  check.equal(settled.error.kind, "usage")
  check.contains(settled.error.message, "'http' of testing.run, for GET " .. url, ...)
end
wrong(nil, "nothing was returned")
wrong(5, "table or string expected, got number")
wrong({ status = 99 }, "field 'status': integer from 200 to 599 expected, got 99")
wrong({ delay = -1 }, "field 'delay'")
wrong({ phase = "lunch" }, "there is no phase 'lunch'")
wrong({ body = 1 }, "field 'body': string expected, got number")
wrong({ body = "", json = 1 }, "only one of them")
wrong({ json = print }, "field 'json'")
wrong({ headers = { a = "b\nc" } }, "field 'headers', 'a'")
wrong({ text = "" }, "unknown field 'text'")
for _, value in ipairs { 1, true, "fake" } do
  check.usage(function() testing.run(WorkerOp, { http = value }) end, "run",
    "field 'http': table, function or \"real\" expected, got ", type(value) == "string" and "fake" or type(value))
end
for _, key in ipairs { url, "get " .. url, "GET", "GET items", "GET  " .. url, 1 } do
  check.usage(function() testing.run(WorkerOp, { http = { [key] = "" } }) end, "run", "field 'http'")
end

-- The limits for a pause and for connecting count, too.
for _, case in ipairs {
  { { idle_timeout = 5 }, {}, "timed out as no byte moved for 5s (idle_timeout), while waiting for the response" },
  { { idle_timeout = 5 }, { phase = "receive" }, "timed out as no byte moved for 5s (idle_timeout), while receiving the response" },
  { { connect_timeout = 5 }, { phase = "connect" }, "timed out after 5s (connect_timeout), while connecting" },
  { { connect_timeout = 5 }, { phase = "tls" }, "timed out after 5s (connect_timeout), " },
} do
  local options, response, text = table.unpack(case)
  options.url, response.delay = url, 20
  for _, stream in ipairs { false, true } do
    options.stream = stream or nil
    settled = run({ ["GET " .. url] = response }, options)
    check.equal(settled.error.kind, "timeout")
    check.contains(tostring(settled.error), text)
    check.equal(settled.duration, 5.0)
  end
end
settled = run({ ["GET " .. url] = { delay = 20 } }, { url = url, connect_timeout = 5 })
check.equal(settled.ok, true)
settled = run({ ["GET " .. url] = { delay = 5 } }, { url = url, idle_timeout = 5 })
check.equal(settled.ok, true)
