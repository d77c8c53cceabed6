-- A response has status, headers, body, address and times, whatever form the server gives it.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local function get(url) return flow.http(url):await() end
local function raw(bytes, query) return get(server:raw(bytes, query)) end

local res = get(server:url("/reply", {
  status = 201, body = "made", header = { "X-One: 1", "X-Two: a", "x-two: b", "X-Space:    c  ", "X-Empty:" },
}))
check.equal(res.status, 201)
check.equal(res.ok, true)
check.equal(res.body, "made")
check.equal(res.headers["x-one"], "1")
check.equal(res.headers["X-One"], "1")
check.equal(res.headers["x-two"], "a, b")
check.equal(res.headers["x-space"], "c")
check.equal(res.headers["x-empty"], "")
check.equal(res.headers["x-none"], nil)
local names = {}
for name, value in pairs(res.headers) do names[name] = value end
check.equal(names["content-length"], "4")
check.equal(names["x-one"], "1")
check.contains(res.url, "http://127.0.0.1:" .. server.http .. "/reply?")
check.equal(math.type(res.elapsed), "float")
check.equal(res.elapsed > 0 and res.elapsed < 100, true)
check.equal(type(res.timings), "table")
for name, time in pairs(res.timings) do check.equal(type(name) == "string" and time >= 0 and time < 100, true, name) end

-- A status from 400 on fails the task unless `check` is false.
res = flow.http { url = server:url("/reply", { status = 404, body = "no" }), check = false }:await()
check.equal(res.status, 404)
check.equal(res.ok, false)
check.equal(res.body, "no")

-- JSON.
check.same(get(server:url("/reply", { body = '{"a":[1,2.5,null]}' })):json(), { a = { 1, 2.5, flow.json.null } })
check.raises(function() get(server:url("/reply", { body = "{" })):json() end, "line 1, column 2")

-- Bodies by length, in pieces, up to the end of the connection, and empty ones.
check.equal(get(server:url("/size", { size = 100000 })).body, ("x"):rep(100000))
check.equal(get(server:url("/size", { size = 100000, chunked = 1 })).body, ("x"):rep(100000))
check.equal(raw "HTTP/1.1 200 OK\r\n\r\nto the end".body, "to the end")
check.equal(raw "HTTP/1.0 200 OK\r\n\r\nold".body, "old")
check.equal(raw "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".body, "")
check.equal(raw "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b".body, "a\0b")
check.equal(raw("HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 3\r\n\r\nabc", { size = 1 }).body, "abc")
check.equal(raw "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok".body, "ok")
check.equal(raw "HTTP/1.1 200 OK\nContent-Length: 2\n\nok".body, "ok")

-- No body belongs to these, though a server sends one; the connection isn't used for the next request then.
for _, head in ipairs { "204 No Content", "304 Not Modified" } do
  res = raw("HTTP/1.1 " .. head .. "\r\nContent-Length: 6\r\n\r\nhidden", { keep = 1 })
  check.equal(res.status, tonumber(head:sub(1, 3)))
  check.equal(res.body, "")
  check.equal(get(server:url("/reply", { body = "next" })).body, "next")
end
res = flow.http { method = "HEAD", url = server:url("/reply", { body = "hidden" }) }:await()
check.equal(res.body, "")
check.equal(res.headers["content-length"], "6")

-- Interim responses aren't the response.
res = raw "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
check.equal(res.status, 200)
check.equal(res.body, "ok")
check.equal(res.headers.link, nil)

-- Trailers and extensions of chunks.
res = raw "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX-After: 1\r\n\r\n"
check.equal(res.body, "abc")

-- Connections are used again.
local first = get(server:url "/echo"):json()
local second = get(server:url "/echo"):json()
check.equal(second.connection, first.connection)
check.equal(second.count, first.count + 1)

-- Python's own server.
local folder <close> = servers.folder()
local file = assert(io.open(folder .. "/page.html", "w"))
file:write "<p>hello"
file:close()
local files <close> = servers.files(folder.path)
res = get(files:url "/page.html")
check.equal(res.body, "<p>hello")
check.equal(res.headers["content-type"], "text/html")
check.equal(flow.http { url = files:url "/none", check = false }:await().status, 404)
