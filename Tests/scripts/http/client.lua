-- A client holds what its requests share: base, headers, credentials, cookies, limits on connections and rate.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local api = flow.http.client {
  base = server:url "/", headers = { ["X-One"] = "1", ["X-Two"] = "2" }, auth = flow.secret "shared-token",
}
local seen = api("echo"):await():json()
check.equal(seen.path, "/echo")
check.equal(seen.headers["x-one"], "1")
check.equal(seen.headers.authorization, "Bearer shared-token")
-- A request replaces; headers by name.
seen = api { url = "echo", headers = { ["x-two"] = "mine" }, auth = "other", query = { a = 1 } }:await():json()
check.equal(seen.headers["x-one"], "1")
check.equal(seen.headers["x-two"], "mine")
check.equal(seen.headers.authorization, "Bearer other")
check.same(seen.query, { a = { "1" } })
check.equal(api:get("echo"):await():json().method, "GET")
check.equal(api:post("echo", { json = { 1 } }):await():json().body, "[1]")

-- The base is a prefix.
local place = "http://127.0.0.1:" .. server.http
local function asked(base, url)
  local id = servers.id()
  flow.http.client { base = base } { url = url, query = { id = id }, check = false }:await()
  return server:requests(id)[1].path
end
check.equal(asked(place, "/v1/x"), "/v1/x")
check.equal(asked(place .. "/v1", "/x"), "/v1/x")
check.equal(asked(place .. "/v1/", "/x"), "/v1/x")
check.equal(asked(place .. "/v1/", "x"), "/v1/x")
check.equal(asked(place .. "/v1", "x"), "/v1/x")
-- A whole address is as it is, and doesn't get the credentials of another origin.
seen = api(server:url("/echo", nil, "other")):await():json()
check.equal(seen.port, server.other)
check.equal(seen.headers.authorization, nil)
check.equal(seen.headers["x-one"], "1")
-- Nor its lines for one server, secret or not.
local plain = flow.http.client {
  base = place, headers = { Authorization = "Basic abc", Cookie = "a=b", ["X-Two"] = "2" },
  cert = "/none/cert.pem", key = "/none/key.pem",
}
seen = plain("/echo"):await():json()
check.equal(seen.headers.authorization, "Basic abc")
check.equal(seen.headers.cookie, "a=b")
seen = plain(server:url("/echo", nil, "other")):await():json()
check.equal(seen.headers.authorization, nil)
check.equal(seen.headers.cookie, nil)
check.equal(seen.headers["x-two"], "2")
seen = plain { url = server:url("/echo", nil, "other"), headers = { Cookie = "own=1" } }:await():json()
check.equal(seen.headers.cookie, "own=1")

-- Nor those with the text of a secret.
local bearer = flow.http.client { base = place, headers = { ["X-Key"] = "Bearer shared-token", ["X-Two"] = "2" } }
check.equal(bearer("/echo"):await():json().headers["x-key"], "Bearer shared-token")
seen = bearer(server:url("/echo", nil, "other")):await():json()
check.equal(seen.headers["x-key"], nil)
check.equal(seen.headers["x-two"], "2")

-- No more connections than allowed: the others wait for their turn.
local before = server:state().accepted
local narrow = flow.http.client { base = place, max_connections = 2 }
local tasks = {}
for i = 1, 12 do tasks[i] = narrow("/slow?delay=0.01") end
for _, task in ipairs(tasks) do check.equal(task:await().body, "slow") end
check.equal(server:state().accepted - before <= 3, true, "two connections, and curl's")

-- A rate: the first at once, then evenly, or as many as the time holds.
local id = servers.id()
local paced = flow.http.client { base = place, rate = { 4, per = 0.4 } }
tasks = {}
local from = flow.now()
local ended = {}
for i = 1, 9 do
  tasks[i] = paced { url = "/echo", query = { id = id, i = i } }:next_on_success(function() ended[i] = flow.now() - from end)
end
flow.when_all_succeed(tasks):await()
-- Not by the times of their arrivals: on a slow machine one may take long, and the next one doesn't.
for i = 1, 9 do check.equal(ended[i] >= (i - 1) // 4 * 0.4 - 0.01, true, "request " .. i) end
local requests = server:requests(id)
-- In order, four at a time.
for i, request in ipairs(requests) do check.equal((request.query.i[1] - 1) // 4, (i - 1) // 4) end
-- One that is cancelled while it waits takes no turn.
local slow = flow.http.client { base = place, rate = { 1, per = 60 } }
slow("/echo"):await()
local waiting = slow("/echo")
flow.sleep(0.01)
check.equal(waiting.state, "pending")
waiting:cancel()
waiting:wait()
check.equal(waiting.state, "cancelled")
-- Nor do many.
local many = {}
for i = 1, 300 do many[i] = slow("/echo") end
for _, each in ipairs(many) do each:cancel() end
flow.when_all_finish(many):await()
for _, each in ipairs(many) do check.equal(each.state, "cancelled") end
-- Its timeout counts the request only, not the turn it waits for… unless it ends before that.
local run = flow.op("FetchOp", { timeout = 0.1, run = function() return slow "/echo" end }):run()
check.equal(run.error.kind, "timeout")

-- Cookies.
local jar = flow.http.client { base = place, cookies = true }
jar("/cookie?set=a%3D1&set=b%3D2%3B%20Path%3D%2Fcookie&set=c%3D3%3B%20Path%3D%2Fother"):await()
local function cookies(client, url)
  local list = {}
  for cookie in client(url):await().body:gmatch "[^; ]+" do list[#list + 1] = cookie end
  table.sort(list)
  return table.concat(list, " ")
end
check.equal(cookies(jar, "/cookie"), "a=1 b=2")
-- Deleted by an expiry, kept from other clients and from requests without a client.
jar("/cookie?set=a%3D1%3B%20Max-Age%3D0"):await()
check.equal(cookies(jar, "/cookie"), "b=2")
check.equal(cookies(flow.http.client { base = place, cookies = true }, "/cookie"), "")
check.equal(cookies(flow.http.client { base = place }, "/cookie"), "")
check.equal(flow.http(server:url "/cookie"):await().body, "")
-- Over a redirect.
jar { url = "/redirect", query = { to = "/cookie", header = "Set-Cookie: r=1; Path=/" } }:await()
check.equal(cookies(jar, "/cookie"), "b=2 r=1")
-- Nobody sets cookies for others.
jar("/cookie?set=x%3D1%3B%20Domain%3Dexample.com"):await()
check.equal(cookies(jar, "/cookie"), "b=2 r=1")
