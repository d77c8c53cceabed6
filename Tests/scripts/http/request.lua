-- Each field of a request arrives at the server as it is documented.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local folder <close> = servers.folder()

local function sent(request)
  if type(request) == "table" and not request.url then request.url = server:url "/echo" end
  return flow.http(request):await():json()
end

-- A text is the address of a GET; a table is a request.
local seen = sent(server:url "/echo")
check.equal(seen.method, "GET")
check.equal(seen.path, "/echo")
check.equal(seen.length, 0)
check.equal(seen.headers.host, "127.0.0.1:" .. server.http)
check.equal(seen.headers["content-type"], nil)
check.contains(seen.headers["user-agent"], "flowlua")
check.contains(seen.headers["accept-encoding"], "gzip", "deflate")
check.equal(sent { method = "OPTIONS" }.method, "OPTIONS")
-- Requests with other lines have these lines as well, with the same values.
for _, request in ipairs {
  { headers = { ["X-Id"] = "7" } }, { auth = "token" }, { auth = { user = "u", password = "p" } },
  { idempotency_key = true }, { method = "DELETE" }, { body = "x" }, { progress = true }, {},
} do
  local headers = sent(request).headers
  check.equal(headers["user-agent"], seen.headers["user-agent"])
  check.equal(headers["accept-encoding"], seen.headers["accept-encoding"])
end

-- Short forms.
for name, method in pairs { get = "GET", delete = "DELETE", post = "POST", put = "PUT", patch = "PATCH" } do
  check.equal(flow.http[name](server:url "/echo"):await():json().method, method)
  check.equal(flow.http[name](server:url "/echo", { headers = { ["X-A"] = "1" } }):await():json().headers["x-a"], "1")
end
check.equal(flow.http.head(server:url "/echo"):await().body, "")
local id = servers.id()
flow.http.head(server:url("/echo", { id = id })):await()
check.equal(server:requests(id)[1].method, "HEAD")

-- Fields of the query are encoded; lists repeat their name; those of the address stay.
seen = sent { query = { page = 2, tag = { "a", "b" }, text = "ä &=+/?#%\n", yes = true, real = 1.5, empty = "" } }
check.same(seen.query, {
  page = { "2" }, tag = { "a", "b" }, text = { "ä &=+/?#%\n" }, yes = { "true" }, real = { "1.5" }, empty = { "" },
})
seen = sent { url = server:url("/echo", { here = 1 }), query = { there = "2" } }
check.same(seen.query, { here = { "1" }, there = { "2" } })
check.same(sent { url = server:url "/echo" .. "#part", query = { q = 1 } }.query, { q = { "1" } })
check.equal(sent { query = {} }.raw_query, "")

-- Headers; one of curl's own can be replaced.
seen = sent { headers = { ["X-Id"] = "7", ["x-number"] = 8, ["User-Agent"] = "mine/1", ["X-Empty"] = "" } }
check.equal(seen.headers["x-id"], "7")
check.equal(seen.headers["x-number"], "8")
check.equal(seen.headers["user-agent"], "mine/1")
check.equal(seen.headers["x-empty"], "")
check.contains(table.concat(seen.lines, "\n"), "X-Id: 7")

-- Bodies make a POST. Each kind has its type, unless a header says another.
seen = sent { json = { name = "Ada", list = { 1, 2 } } }
check.equal(seen.method, "POST")
check.equal(seen.headers["content-type"], "application/json")
check.same(flow.json.decode(seen.body), { name = "Ada", list = { 1, 2 } })
check.equal(sent { json = false }.body, "false")
check.equal(sent { json = { 1 }, headers = { ["Content-Type"] = "application/x" } }.headers["content-type"],
  "application/x")
local bytes = {}
for i = 0, 255 do bytes[#bytes + 1] = string.char(i) end
bytes = table.concat(bytes)
seen = sent { body = bytes }
check.equal(seen.method, "POST")
check.equal(seen.hex, (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end)))
check.equal(sent { body = "" }.method, "POST")
check.equal(sent { body = "" }.headers["content-length"], "0")
check.equal(sent { body = "x", method = "PUT" }.method, "PUT")
check.equal(sent { body = "x", method = "GET" }.body, "x")
check.equal(sent { body = ("x"):rep(3 << 20) }.length, 3 << 20)
seen = sent { form = { a = "1 2", b = { "x", "y&" }, c = "ä" } }
check.equal(seen.headers["content-type"], "application/x-www-form-urlencoded")
check.contains(seen.body, "b=x&b=y%26", "c=%C3%A4")

-- A file is streamed, with its length.
local path = folder .. "/upload"
local file = assert(io.open(path, "w"))
file:write(("0123456789"):rep(200000))
file:close()
seen = sent { upload = path, method = "PUT" }
check.equal(seen.length, 2000000)
check.equal(seen.headers["content-length"], "2000000")
check.equal(seen.method, "PUT")
check.equal(seen.headers["expect"], nil)
check.equal(seen.sha256, io.popen("sha256sum " .. path):read "a":sub(1, 64))
check.equal(sent { upload = path }.length, 2000000)
-- A part of it, as large uploads are sent that continue.
seen = sent { upload = { path = path, from = 1999990, size = 5 }, method = "PUT" }
check.equal(seen.headers["content-length"], "5")
check.equal(seen.body, "01234")
check.equal(sent { upload = { path = path, from = 1999993 } }.body, "3456789")
check.equal(sent { upload = { path = path, size = 0 } }.length, 0)
check.equal(sent { upload = { path = path } }.length, 2000000)
for _, part in ipairs { { from = 2000001 }, { from = 1999990, size = 11 } } do
  part.path = path
  local problem = select(2, pcall(sent, { upload = part }))
  check.contains(tostring(problem), "can't send a part of '" .. path .. "': it has 2000000 bytes")
end
check.contains(tostring(select(2, pcall(sent, { upload = { path = "/proc/version", from = 1 } }))),
  "can't send a part of '/proc/version': its size isn't known")
-- One whose bytes the system doesn't count has no length.
local version = assert(io.open "/proc/version"):read "a"
seen = sent { upload = "/proc/version", method = "PUT" }
check.equal(seen.body, version)
check.equal(seen.headers["content-length"], nil)
check.contains(sent { files = { f = { path = "/proc/version" } } }.body, version, 'filename="version"')

-- Credentials.
check.equal(sent { auth = "token" }.headers.authorization, "Bearer token")
check.equal(sent { auth = flow.secret "token" }.headers.authorization, "Bearer token")
check.equal(sent { auth = { user = "Ada", password = flow.secret "pass:word" } }.headers.authorization,
  "Basic QWRhOnBhc3M6d29yZA==")
check.equal(flow.http { url = server:url "/auth", auth = { user = "a", password = "b" } }:await().body, "a:b")

-- An idempotency key is made, or as it is given.
seen = sent { body = "x", idempotency_key = true }
check.equal(#seen.headers["idempotency-key"] >= 16, true)
check.equal(sent { body = "x", idempotency_key = true }.headers["idempotency-key"] ~= seen.headers["idempotency-key"],
  true)
check.equal(sent { body = "x", idempotency_key = "mine" }.headers["idempotency-key"], "mine")

-- A body that the server asks for before it's sent, or doesn't want.
for _, mode in ipairs { "accept", "ignore" } do
  check.equal(flow.http {
    url = server:url("/expect", { mode = mode }), body = "body", headers = { Expect = "100-continue" },
  }:await():json().body, "body")
end
check.equal(flow.http {
  url = server:url("/expect", { mode = "reject" }), body = "body", headers = { Expect = "100-continue" }, check = false,
}:await().status, 417)
