-- In flow.testing requests get replies of the test's own, on the virtual clock; others are errors there.
local flow, check = require "flow", require "check"
local testing = require "flow.testing"

local FetchOp = flow.op("FetchOp", function(ctx, request)
  local res = flow.http(request):await()
  ctx:set("status", res.status)
  ctx:set("body", res.body)
end)
local function run(request, http, policy)
  local op = FetchOp(request)
  return testing.run(policy and op:with(policy) or op, { http = http })
end

local items = "https://api.example/items"
local r = run(items, { ["GET " .. items] = { status = 200, json = { 1, 2 } } })
check.equal(r.ok, true, tostring(r.error))
check.equal(r.data.body, "[1,2]")
check.contains(r:summary(), "[FetchOp] GET https://api.example/items -> 200 in 0s, 5 B")
r = run(items, { ["GET " .. items] = { body = "text", delay = 5 } })
check.equal(r.data.body, "text")
check.equal(r.data.status, 200)
check.equal(r.duration, 5.0)
-- A failure, and one that is tried again.
r = run(items, { ["GET " .. items] = { status = 503, headers = { ["Retry-After"] = "7" } } }, { retry = 2 })
check.equal(r.error.kind, "http")
check.equal(r.error.retry_after, 7.0)
check.equal(r.duration, 7.0)
r = run({ url = items, timeout = 3 }, { ["GET " .. items] = { delay = 5 } })
check.equal(r.error.kind, "timeout")
check.equal(r.duration, 3.0)
-- A function sees the request.
local seen
r = run({ url = items, json = { a = 1 }, query = { q = 1 } }, function(request)
  seen = request
  return { status = 201, body = "made" }
end)
check.equal(r.data.status, 201)
check.equal(seen.method, "POST")
check.contains(seen.url, items)
-- One that isn't replaced is an error.
r = run("https://api.example/other", { ["GET " .. items] = {} })
check.equal(r.ok, false)
check.contains(r.error.message, "https://api.example/other")
r = testing.run(FetchOp(items))
check.equal(r.ok, false)
check.contains(r.error.message, "https://api.example/items")
