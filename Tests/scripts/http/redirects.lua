-- Redirects are followed as browsers do, up to a limit; what is secret isn't sent to another origin.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local function follow(status, request, to)
  request.url = server:url("/redirect", { status = status, to = to or "/echo" })
  return flow.http(request):await():json()
end

-- 301, 302 and 303 make a GET of a POST; 307 and 308 repeat it.
for _, status in ipairs { 301, 302, 303 } do
  local seen = follow(status, { body = "text" })
  check.equal(seen.method, "GET", status)
  check.equal(seen.length, 0, status)
  check.equal(seen.headers["content-type"], nil, status)
end
for _, status in ipairs { 307, 308 } do
  local seen = follow(status, { body = "text", method = "PUT" })
  check.equal(seen.method, "PUT", status)
  check.equal(seen.body, "text", status)
end
check.equal(follow(307, { json = { 1 } }).body, "[1]")
check.equal(follow(307, { files = { a = { body = "part", name = "n" } } }).length > 50, true)

local res = flow.http(server:url("/hops", { n = 3 })):await()
check.equal(res.url, server:url "/echo")
check.equal(res.status, 200)

-- The limit is 10.
check.equal(flow.http(server:url("/hops", { n = 10 })):await().status, 200)
local function too_many(request, limit)
  local task = flow.http(request)
  task:wait()
  check.equal(task.state, "failed")
  check.contains(task.error.message, limit .. " redirects")
end
too_many({ url = server:url("/hops", { n = 11 }) }, 10)
too_many({ url = server:url "/loop" }, 10)
too_many({ url = server:url("/hops", { n = 3 }), redirects = 2 }, 2)
res = flow.http { url = server:url("/hops", { n = 3 }), redirects = 0 }:await()
check.equal(res.status, 302)
check.equal(res.headers.location, "/hops?n=2")
check.equal(res.url, server:url("/hops", { n = 3 }))

-- Headers of the last response only.
res = flow.http(server:url("/redirect", { to = "/reply", header = "X-First: 1" })):await()
check.equal(res.headers["x-first"], nil)

-- Credentials and secrets stay with the origin; everything else goes along.
local function headers(to)
  return follow(307, {
    auth = "bearer-of-mine",
    headers = { ["X-Api-Key"] = flow.secret "the key of mine", ["X-Plain"] = "plain", Cookie = "a=1",
      ["Proxy-Authorization"] = "x", ["Proxy-Anything"] = "y" },
  }, to).headers
end
local same = headers "/echo"
check.equal(same.authorization, "Bearer bearer-of-mine")
check.equal(same["x-api-key"], "the key of mine")
check.equal(same["x-plain"], "plain")
check.equal(same.cookie, "a=1")
for _, to in ipairs { server:url("/echo", nil, "other"), (server:url "/echo":gsub("127.0.0.1", "localhost")) } do
  local other = headers(to)
  check.equal(other.authorization, nil)
  check.equal(other["x-api-key"], nil)
  check.equal(other.cookie, nil)
  check.equal(other["proxy-authorization"], nil)
  check.equal(other["proxy-anything"], nil)
  check.equal(other["x-plain"], "plain")
  check.equal(other.host, to:match "//(.-)/")
end
-- There and back: what was dropped stays dropped.
local back = headers(server:url("/redirect", { status = 307, to = server:url "/echo" }, "other"))
check.equal(back.authorization, nil)
check.equal(back["x-api-key"], nil)
-- Basic credentials, and those of the address.
local seen = follow(302, { auth = { user = "a", password = "b" } }, server:url("/echo", nil, "other"))
check.equal(seen.headers.authorization, nil)
seen = flow.http((server:url("/redirect", { to = server:url("/echo", nil, "other") }):gsub("//", "//a:b@", 1)))
  :await():json()
check.equal(seen.headers.authorization, nil)

-- So does the text of a secret, wherever it is in a header, as it is or encoded for a URL; in a body it ends the request.
local other = server:url("/echo", nil, "other")
local text = flow.secret "the+secret+text" and "the+secret+text"
local function texts(to)
  return follow(307, { idempotency_key = text, method = "GET", headers = {
    ["X-Bearer"] = "Bearer " .. text, ["X-List"] = { "a", text }, ["X-Encoded"] = "the%2bsecret%2Btext", [text] = "name",
  } }, to).headers
end
same = texts "/echo"
check.equal(same["x-bearer"], "Bearer the+secret+text")
check.equal(same["idempotency-key"], text)
check.equal(same[text], "name")
for name, value in pairs(texts(other)) do check.lacks(name .. value, text, "the%2bsecret") end
check.contains(texts(other)["x-list"], "a")
local bodies = {
  { body = flow.secret(text) }, { body = '{"key":"the+secret+text"}' }, { json = { text } }, { form = { key = text } },
  { files = { part = { body = "a " .. text } } }, { form = { key = text }, files = { part = { body = "a" } } },
}
for _, status in ipairs { 307, 308 } do
  for number, request in ipairs(bodies) do
    check.equal(follow(status, request).length > 14, true, number)
    request.url = server:url("/redirect", { status = status, to = other })
    local task = flow.http(request)
    task:wait()
    check.equal(task.error.kind, "http", number)
    check.contains(task.error.message, "redirects to another server, which doesn't get the secret in the body")
    check.lacks(tostring(task.error), text)
  end
end
-- A GET has none, and other bodies go along.
check.equal(follow(303, { body = text }, other).length, 0)
check.equal(follow(307, { body = "text" }, other).body, "text")

-- A redirect to something that isn't HTTP isn't followed.
for _, to in ipairs { "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/" } do
  local task = flow.http(server:url("/redirect", { to = to }))
  task:wait()
  check.equal(task.error.kind, "http")
  check.contains(task.error.message, "redirects to something else")
end
-- Without a Location there is nowhere to go.
check.equal(flow.http(server:url("/reply", { status = 302 })):await().status, 302)
