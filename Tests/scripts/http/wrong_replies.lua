-- A reply that breaks the protocol is an error of kind `network`, never a crash, a hang or half a body.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local function problem(url)
  local request = type(url) == "table" and url or { url = url }
  request.timeout = 60
  local task = flow.http(request)
  task:wait()
  check.equal(task.state, "failed", request.url)
  local e = task.error
  check.equal(e.kind, "network", request.url)
  check.equal(e.phase == "receive" or e.phase == "wait", true, request.url)
  check.equal(e.sent, true, request.url)
  check.contains(e.message, "127.0.0.1")
  return e
end
local function raw(bytes, query) return problem(server:raw(bytes, query)) end

-- Lengths.
problem(server:url("/truncated", { declared = 1000, sent = 100 }))
problem(server:url("/truncated", { chunked = 1 }))
raw "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx"
-- Status lines.
raw ""
raw "\r\n\r\n"
raw "hello\r\n\r\n"
raw "HTTP/1.1\r\n\r\n"
raw "HTTP/1.1 abc OK\r\n\r\n"
raw "HTTP/9.9 200 OK\r\n\r\n"
raw "\22\3\1\0\5hello"
raw(("x"):rep(2000))
-- Headers.
raw "HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n"
raw "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n"
raw "HTTP/1.1 200 OK\r\nX-Half: 1"
raw "HTTP/1.1 200 OK\r\nTransfer-Encoding: nonsense\r\n\r\nx"
-- Chunks.
local chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
raw(chunked .. "xyz\r\nabc\r\n0\r\n\r\n")
raw(chunked .. "3\r\nabcdef\r\n0\r\n\r\n")
raw(chunked .. "-3\r\nabc\r\n0\r\n\r\n")
raw(chunked .. "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n")
raw(chunked .. "3\r\nab")
-- Encodings.
raw "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain"
-- Resets, in each phase.
for _, phase in ipairs { "request", "status", "headers", "head", "body" } do
  local e = problem(server:url("/reset", { phase = phase }))
  check.contains(e.message, "eset")
end
local task = flow.http { url = server:url("/reset", { phase = "upload" }), body = ("x"):rep(10 << 20) }
task:wait()
check.equal(task.error.kind, "network")
check.equal(task.error.sent, true)
check.equal(task.error.phase == "send" or task.error.phase == "receive", true)

-- A header of 1 MB and headers without an end are refused; 10,000 headers aren't.
for _, url in ipairs {
  server:url("/header_flood", { count = 1, size = 1 << 20 }), server:url("/header_flood", { count = 1000000 }),
  server:url("/endless", { part = "headers" }),
} do
  check.contains(problem(url).message, "header")
end
local res = flow.http(server:url("/header_flood", { count = 10000, size = 5 })):await()
check.equal(res.body, "ok")
check.equal(res.headers["x-10000"], "vvvvv")
-- So are 10,000 of one name.
res = flow.http(server:raw("HTTP/1.1 200 OK\r\n" .. ("X-A: 1\r\n"):rep(10000) .. "Content-Length: 0\r\n\r\n")):await()
check.equal(res.headers["x-a"], ("1, "):rep(9999) .. "1")

-- A folded line continues the value of the one before, whatever it looks like.
res = flow.http(server:raw "HTTP/1.1 200 OK\r\nX-One: a\r\n\tb: c\r\n  d\r\nContent-Length: 0\r\n\r\n"):await()
check.equal(res.headers["x-one"], "a b: c d")
check.equal(res.headers.b, nil)
-- One that is empty isn't the end of the header, and one that looks like a status line is none.
res = flow.http(server:raw("HTTP/1.1 200 OK\r\nX-One: a\r\n \r\n\t\r\nX-Two: b\r\n HTTP/1.1 404 Not\r\n"
  .. "Content-Length: 0\r\n\r\n")):await()
check.equal(res.status, 200)
check.equal(res.headers["x-one"], "a")
check.equal(res.headers["x-two"], "b HTTP/1.1 404 Not")
res = flow.http(server:raw("HTTP/1.1 302 Found\r\nX-One: a\r\n \r\nLocation: "
  .. server:url("/reply", { body = "there" }) .. "\r\nContent-Length: 0\r\n\r\n")):await()
check.equal(res.body, "there")

-- A header that begins with a folded line, after responses with headers.
for _ = 1, 50 do
  flow.http(server:url("/reply", { header = { "X-One: 1", "X-Two: 2" } })):await()
  local task = flow.http(server:raw "HTTP/1.1 200 OK\r\n folded: 1\r\nContent-Length: 0\r\n\r\n")
  task:wait()
  check.equal(task.error == nil or task.error.kind == "network", true)
end

-- The client is as before.
check.equal(flow.http(server:url("/reply", { body = "well" })):await().body, "well")
