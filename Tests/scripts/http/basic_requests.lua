-- Requests carry method, query, header and body, and responses come back with status, header and body.
-- clock: real: a server is outside
local flow, check = require "flow", require "check"

-- A server that describes each request; it ends with its standard input.
local server = [[
import http.server, json, os, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seen = {"method": self.command, "path": self.path, "body": body.decode("latin1"),
                "headers": {name.lower(): value for name, value in self.headers.items()}}
        path = self.path.split("?")[0]
        text = json.dumps(seen).encode()
        if path == "/lines": text = b"one\ntwo\n" * 50000
        if path == "/endless": text = bytes(20 << 20)
        self.send_response(int(path[8:]) if path.startswith("/status/") else 200)
        if path.startswith("/status/3"): self.send_header("Location", "/moved")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(text)
    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = handle_request
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)
]]
local program <close> = flow.exec({ "python3", "-c", server }, { stdin = "pipe" })
local port = program:lines()()
local base = "http://127.0.0.1:" .. port

local res = flow.http(base .. "/plain?a=1"):await()
check.equal(res.status, 200)
check.equal(res.ok, true)
check.equal(res.headers["Content-Type"], "application/json")
check.equal(res.url, base .. "/plain?a=1")
check.equal(res:json().method, "GET")
check.equal(res:json().path, "/plain?a=1")

local function seen(request)
  request.url = base .. (request.url or "/")
  return flow.http(request):await():json()
end
local got = seen { query = { tag = { "a", "b" }, text = "x y&z" }, headers = { ["X-Id"] = 7 } }
check.equal(got.path, "/?tag=a&tag=b&text=x%20y%26z")
check.equal(got.headers["x-id"], "7")
got = seen { json = { 1, { a = "b" } } }
check.equal(got.method, "POST")
check.equal(got.body, '[1,{"a":"b"}]')
check.equal(got.headers["content-type"], "application/json")
got = seen { body = "a\0b", method = "put" }
check.equal(got.method, "PUT")
check.equal(got.body, "a\0b")
check.equal(got.headers["content-type"], nil)
check.equal(seen({ form = { a = "1 2", b = true } }).body, "a=1%202&b=true")
check.equal(seen({ auth = flow.secret "sesame" }).headers.authorization, "Bearer sesame")
check.equal(seen({ auth = { user = "u", password = "p" } }).headers.authorization, "Basic dTpw")
got = flow.http.post(base .. "/", { files = { f = "bytes" }, form = { k = "v" } }):await():json()
check.contains(got.body, 'name="k"', 'name="f"; filename="f"', "bytes")
check.equal(flow.http.head(base .. "/"):await().body, "")

-- Redirects change the method as browsers do.
check.equal(seen({ url = "/status/302", body = "x" }).method, "GET")
got = seen { url = "/status/307", body = "x" }
check.equal(got.method, "POST")
check.equal(got.body, "x")
check.equal(flow.http { url = base .. "/status/302", redirects = 0, check = true }:await().status, 302)

-- A status from 400 on is an error.
local task = flow.http(base .. "/status/503?token=abcdef")
task:wait()
check.equal(task.error.kind, "http")
check.equal(task.error.code, 503)
check.contains(task.error.message, "/status/503?token=<redacted> -> 503")
check.equal(flow.http { url = base .. "/status/404", check = false }:await().ok, false)

-- Files and streams.
local path = os.tmpname()
res = flow.http { url = base .. "/lines", save = path }:await()
check.equal(res.saved, path)
check.equal(io.open(path):seek "end", 400000)
local size = 0
for chunk in flow.http { url = base .. "/lines", stream = true }:await():chunks() do size = size + #chunk end
check.equal(size, 400000)
os.remove(path)

-- An op logs each response, and can be one.
local run = flow.op("FetchOp", function() return flow.http(base .. "/items") end):run()
check.contains(run:summary(), "[FetchOp] GET " .. base .. "/items -> 200 in ")
run = flow.ops.HTTPOp { url = base .. "/users/{name}", into = "page" }:run { name = "a/b" }
check.equal(run.data.page.path, "/users/a%2Fb")
local api = flow.http.client { base = base .. "/v1", headers = { ["X-Api"] = "1" }, max_connections = 2 }
got = api.get("items"):await():json()
check.equal(got.path, "/v1/items")
check.equal(got.headers["x-api"], "1")
check.equal(api:get("/items"):await():json().path, "/v1/items")

-- A cancel ends a request at once.
task = flow.http(base .. "/plain")
task:cancel "enough"
check.equal(task.state, "cancelled")

-- The progress goes to a function, whose error ends the request.
local last
flow.http { url = base .. "/lines", progress = function(done, total) last = { done, total } end }:await()
check.same(last, { 400000, 400000 })
task = flow.http { url = base .. "/lines", progress = function() error "not this" end }
task:wait()
check.contains(tostring(task.error), "not this")

-- A limit of the size counts for files too, and leaves nothing.
task = flow.http { url = base .. "/lines", save = path, max_bytes = 1000 }
task:wait()
check.contains(task.error.message, "more than 1000 bytes (max_bytes)")
check.equal(io.open(path), nil)

-- Two requests of a second: the third waits.
api = flow.http.client { base = base, rate = { 2, per = 0.05 } }
local from = flow.now()
for _ = 1, 3 do api("/x"):await() end
check.equal(flow.now() - from >= 0.05, true)

-- A stream that nobody reads to its end doesn't keep the script: it would for the 10 seconds of a connection.
local host = require "host"
local result = host.script(([[
  local res = require "flow".http { url = %q, stream = true }:await()
  print(#res:chunks()() > 0)
  local from = os.time()
  kept = setmetatable({}, { __gc = function() if os.time() - from >= 9 then print "late" end end })
]]):format(base .. "/endless"))
check.equal(result.stdout, "true\n")
