-- HTTPOp is an op whose address has the op's inputs in braces.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local place = "http://127.0.0.1:" .. server.http

local FetchOp = flow.ops.HTTPOp { url = place .. "/reply?body={name}&n={count}", into = "page" }
check.equal(FetchOp.needs.name ~= nil, true)
check.equal(FetchOp.needs.count ~= nil, true)
check.equal(FetchOp.gives.page ~= nil, true)
local run = FetchOp:run { name = "a b&c=d/ä", count = 7 }
check.equal(run.ok, true, tostring(run.error))
check.equal(run.data.page, "a b&c=d/ä")
run = FetchOp:run { name = "x" }
check.equal(run.error.kind, "insufficient_input")
check.contains(run.error.message, "count")

-- In a path, each value is one segment.
local id = servers.id()
flow.ops.HTTPOp { url = place .. "/files/{path}?id=" .. id, check = false, into = "page" }:run { path = "../a/b?c#d" }
check.equal(server:requests(id)[1].raw_query, "id=" .. id)
check.equal(server:requests(id)[1].path, "/files/..%2Fa%2Fb%3Fc%23d")

for _, path in ipairs { ".", ".." } do
  run = flow.ops.HTTPOp { url = place .. "/files/{path}", into = "page" }:run { path = path }
  check.contains(run.error.message, "<path> is '" .. path .. "', which can't be a part of a URL")
end

-- JSON becomes a table.
run = flow.ops.HTTPOp { url = server:url "/echo" .. "?who={who}", into = "seen" }:run { who = "Ada" }
check.equal(type(run.data.seen), "table")
check.same(run.data.seen.query, { who = { "Ada" } })

-- All else of a request, and a flow's policy.
run = flow.ops.HTTPOp {
  url = server:url "/echo", into = "seen", method = "PUT", json = { 1 }, headers = { ["X-A"] = "1" },
}:run()
check.equal(run.data.seen.method, "PUT")
check.equal(run.data.seen.body, "[1]")
check.equal(run.data.seen.headers["x-a"], "1")
id = servers.id()
run = flow.new("twice"):add(
  flow.ops.HTTPOp { url = server:url("/flaky", { id = id, times = 1 }), into = "text" }:with { retry = 2 }):run()
check.equal(run.ok, true, tostring(run.error))
check.equal(run.data.text, "ok")
check.equal(#server:requests(id), 2)

-- Each execution has a key of its own, and so has each item.
id = servers.id()
local PostOp = flow.ops.HTTPOp {
  url = server:url("/echo", { id = id }) .. "&number={number}", body = "x", idempotency_key = true, into = "seen",
}
for n = 1, 2 do check.equal(PostOp:run { number = n }.ok, true) end
check.equal(flow.new("posts"):data { numbers = { 1, 2, 3 } }
  :add_grouped(PostOp, { input = "numbers", output = "all" }):run().ok, true)
local keys = {}
for _, request in ipairs(server:requests(id)) do
  local key = request.headers["idempotency-key"]
  check.equal(keys[key], nil)
  keys[key] = true
end
check.equal(#server:requests(id), 5)

-- In a group, one for each item.
run = flow.new("pages"):data { names = { "a", "b", "c", "d" } }
  :add_grouped(flow.ops.HTTPOp { url = place .. "/reply?body={name}", into = "page" },
    { input = "names", output = "pages", max_concurrent = 2 }):run()
check.same(run.data.pages, { "a", "b", "c", "d" })

-- Into a file.
local folder <close> = servers.folder()
run = flow.ops.HTTPOp { url = server:url("/size", { size = 10 }), save = folder .. "/out" }:run()
check.equal(run.ok, true, tostring(run.error))
check.equal(io.open(folder .. "/out"):read "a", "xxxxxxxxxx")

-- A failure is the op's.
run = flow.ops.HTTPOp { url = server:url("/reply", { status = 404 }), into = "page" }:run()
check.equal(run.error.kind, "http")
check.equal(run.error.status, 404)
check.contains(run:summary(), "[HTTPOp] GET http://127.0.0.1:" .. server.http .. "/reply?status=", " -> 404 in ")
