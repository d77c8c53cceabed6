-- Bad input is an error of kind `usage` that names the function, the field and the line, before anything is sent.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local url = server:url "/echo"

local function bad(request, ...)
  check.usage(function() flow.http(request) end, "flow.http", ...)
end
local function field(name, value, ...)
  bad({ url = url, [name] = value }, name, ...)
end

bad(nil, "string or table")
bad(7)
bad(true)
bad({}, "url")
bad({ url = 7 }, "url", "string", "number")
bad({ url = url, URL = url }, "URL")
bad({ url = url, [1] = url })
field("method", 1, "string")
field("method", "GE T")
field("method", "")
field("method", "GET\r\nX: 1")
for _, name in ipairs { "query", "headers", "form", "files" } do field(name, "x", "table") end
field("query", { [{}] = 1 })
field("query", { a = {  { } } })
field("query", { a = print }, "function")
field("headers", { a = {} })
field("headers", { a = print })
-- Nobody writes headers of their own into another's.
field("headers", { ["X-A"] = "1\r\nX-B: 2" }, "X-A")
field("headers", { ["X-A\r\nX-B"] = "1" })
field("headers", { ["X A"] = "1" })
field("headers", { [""] = "1" })
field("headers", { ["X-A:"] = "1" })
field("headers", { ["X-A"] = "a\0b" }, "X-A")
field("auth", "a\nb", "auth")
field("auth", 7, "auth")
field("auth", { user = "a" }, "password")
field("auth", { password = "a" }, "user")
field("auth", { user = "a", password = "b", other = 1 }, "other")
field("body", {}, "string")
field("body", 7)
field("json", print, "function")
field("files", { a = 7 })
field("files", { a = {} }, "path")
field("files", { ["a\0b"] = "x" }, "NUL")
field("files", { a = { path = "x", type = "a/b\r\nX: 1" } }, "line end")
field("files", { a = { body = "x", name = "a\nb" } }, "line end")
bad({ url = url, form = { ["a\0b"] = "x" }, files = { a = "x" } }, "form", "NUL")
field("files", { a = { path = "x", other = 1 } }, "other")
field("upload", {}, "upload.path")
field("upload", { path = "x", from = -1 }, "upload.from")
field("upload", { path = "x", other = 1 }, "upload.other")
field("upload", { path = "a\0b" }, "NUL")
field("save", {}, "string")
field("save", "a\0b")
for _, name in ipairs { "timeout", "connect_timeout", "idle_timeout" } do
  for _, value in ipairs { "x", -1, 0 / 0, {} } do field(name, value) end
end
for _, value in ipairs { -1, "x", 1.5, 1 << 62 } do field("max_bytes", value) end
for _, value in ipairs { -1, "x", 1.5 } do field("redirects", value) end
for _, name in ipairs { "check", "insecure", "resume", "stream" } do field(name, 1, "boolean") end
field("http", "3", "1.1")
field("http", 2)
field("proxy", 7)
for _, name in ipairs { "ca", "cert", "key" } do field(name, {}) end
field("cookies", 7)
field("idempotency_key", {})
field("resume", true, "save")
-- One body only, and none that a file would have to be for.
bad({ url = url, body = "a", json = 1 }, "body", "json")
bad({ url = url, form = {}, upload = "x" }, "form", "upload")
bad({ url = url, save = "x", stream = true }, "save", "stream")

check.usage(function() flow.http() end, "flow.http")
check.usage(function() flow.http.get() end, "flow.http.get")
check.usage(function() flow.http.get(url, 7) end, "flow.http.get", "#2")
check.usage(function() flow.http.get(url, { url = url }) end, "flow.http.get", "url")
check.usage(function() flow.http.post(url, { method = "GET" }) end, "flow.http.post", "method")
check.usage(function() flow.http.client { base = 7 } end, "flow.http.client", "base")
-- Each names the value that it got; before an @ there may be a password.
for fields, message in pairs {
  [{ base = "ftp://u:pw@h" }] = "'base': a URL that begins with http:// or https:// expected, got 'ftp://<redacted>@h'",
  [{ base = "h/x" }] = "'base': a URL that begins with http:// or https:// expected, got 'h/x'",
  [{ rate = 2.5 }] = "'rate': integer of at least 1, or { n, per = seconds }, expected, got 2.5",
  [{ rate = "2" }] = "'rate': integer of at least 1, or { n, per = seconds }, expected, got string",
  [{ rate = { 1, per = 0 } }] = "'rate.per': a finite number of seconds, greater than 0, expected, got 0",
  [{ cookies = "x" }] = "'cookies': boolean, or a jar of flow.http.jar(), expected, got string",
  [{ http = "3" }] = "'http': \"1.1\" or \"2\" expected, got \"3\"",
  [{ auth = { 1, 2 } }] = "field 'auth': fields are named by strings, got a key of type integer",
  [{ auth = { user = "u" } }] = "'auth.password': string or secret expected, got nil",
} do
  check.usage(function() flow.http.client(fields) end, "flow.http.client", message)
end
check.usage(function() flow.http("http://h/", { cookies = true }) end, "'cookies': jar of flow.http.jar() expected, got boolean")
check.usage(function() flow.http.client { other = 7 } end, "flow.http.client", "other")
check.usage(function() flow.http.client { max_connections = 0 } end, "flow.http.client", "max_connections")
check.usage(function() flow.http.client { rate = {} } end, "flow.http.client", "rate")
check.usage(function() flow.http.client { rate = 0 } end, "flow.http.client", "rate")
check.usage(function() flow.ops.HTTPOp() end, "HTTPOp")
check.usage(function() flow.ops.HTTPOp { url = url, other = 1 } end, "HTTPOp", "other")

-- A secret can't be encoded into a body by accident.
check.raises(function() flow.http { url = url, json = { flow.secret "token" } } end, "secret")

-- Tables with metamethods that raise, and every other value for every field: an error, or a request; no crash.
local values = require "values"
local all = values.all()
for i = 1, all.n do
  -- Many times a megabyte takes a sanitizer minutes.
  if type(all[i]) == "string" and #all[i] > 1e5 then all[i] = ("x"):rep(1e4) end
end
bad(url .. "?" .. ("x"):rep(2e6), "1000000 bytes")
for _, name in ipairs { "url", "method", "query", "headers", "json", "body", "form", "files", "upload", "auth",
  "timeout", "connect_timeout", "idle_timeout", "check", "max_bytes", "redirects", "proxy", "ca", "cert", "key",
  "insecure", "cookies", "http", "idempotency_key", "progress", "retry" } do
  for i = 1, all.n do
    local request = { url = server:url("", nil, "refused"), timeout = 0.01, [name] = all[i] }
    local ok, task = pcall(flow.http, request)
    if ok then
      task:cancel()
      task:wait()
      check.equal(task.state ~= "pending", true)
    end
  end
end
for i = 1, all.n do
  local ok, task = pcall(flow.http, all[i])
  if ok then task:cancel() end
  pcall(flow.http.client, all[i])
end
check.equal(server:state().accepted, 1, "connections; the one is curl's")
