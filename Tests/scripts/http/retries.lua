-- A request is repeated when that may help and can't do harm: after these statuses, when nothing was sent, by method.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

-- Runs an op with a request that fails a number of times; returns the run and how often the server saw it.
local function attempts(parameters, request, retry)
  local id = servers.id()
  parameters.id = id
  request.url = server:url(parameters.path or "/flaky", parameters)
  local FetchOp = flow.op("FetchOp", { retry = retry or 3, run = function(ctx)
    ctx:set("body", flow.http(request):await().body)
  end })
  local run = FetchOp:run()
  -- Looked at, so that nothing reports it.
  local _ = run.error
  return run, server:requests(id)
end
local function count(parameters, request, retry)
  local _, seen = attempts(parameters, request, retry)
  return #seen
end

-- Statuses.
for _, status in ipairs { 408, 425, 429, 500, 502, 503, 504 } do
  local run, seen = attempts({ status = status, times = 2 }, {})
  check.equal(#seen, 3, status)
  check.equal(run.data.body, "ok", status)
end
for _, status in ipairs { 400, 401, 403, 404, 409, 413, 501, 505 } do
  local run, seen = attempts({ status = status, times = 2 }, {})
  check.equal(#seen, 1, status)
  check.equal(run.error.status, status)
end

-- Methods.
for _, method in ipairs { "GET", "HEAD", "PUT", "DELETE", "OPTIONS" } do
  check.equal(count({}, { method = method }), 2, method)
end
for _, method in ipairs { "POST", "PATCH" } do
  check.equal(count({}, { method = method, body = "x" }), 1, method)
end
local run, seen = attempts({}, { method = "POST", body = "x", idempotency_key = "of mine" })
check.equal(run.ok, true)
check.equal(#seen, 2)
check.equal(seen[1].headers["idempotency-key"], "of mine")
check.equal(seen[2].headers["idempotency-key"], "of mine")
check.equal(seen[2].body, "x")

-- Connections that end: a POST that the server has read isn't sent twice.
check.equal(count({ status = 0 }, { method = "GET" }), 2)
check.equal(count({ status = 0 }, { method = "POST", body = "x" }), 1)
check.equal(count({ status = 0 }, { method = "POST", body = "x", idempotency_key = true }), 2)
-- One that never left is tried again.
local tries = 0
run = flow.op("RefusedOp", { retry = 3, run = function()
  tries = tries + 1
  return flow.http { url = server:url("/", nil, tries < 3 and "refused" or "http"), body = "x", check = false }
end }):run()
check.equal(run.ok, true)
check.equal(tries, 3)

-- A kept connection that the server closed meanwhile isn't a failure.
for _ = 1, 5 do
  local id = servers.id()
  flow.http(server:raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", { id = id })):await()
  servers.eventually(function() return server:state(id).ended end, "the connection is closed")
  check.equal(flow.http { url = server:url("/reply", { body = "y" }), body = "a post" }:await().body, "y")
end

-- Retry-After lengthens the delay, up to max_delay.
local function delay(header, retry)
  local _, requests = attempts({ status = 429, header = "Retry-After: " .. header }, {}, retry)
  check.equal(#requests, 2, header)
  return requests[2].time - requests[1].time
end
check.equal(delay("1", 2) >= 0.9, true)
check.equal(delay("99999999999", { attempts = 2, max_delay = 0.05 }) >= 0.04, true)
check.equal(delay("soon", 2) < 30, true)
check.equal(delay("0", { attempts = 2, delay = 0.05 }) >= 0.04, true)
check.equal(delay("Mon, 02 Jan 2006 15:04:05 GMT", 2) < 30, true)
-- Without max_delay it is 60 s: the log says so; the op is stopped then.
run = flow.op("PatientOp", { retry = 2, run = function()
  return flow.http(server:url("/reply", { status = 503, header = "Retry-After: 86400" }))
end }):start()
servers.eventually(function() return run:summary():find("Retry 2/2", 1, true) end, "a retry")
check.contains(run:summary(), "Retry 2/2 in 60s")
run:cancel()
run:wait()
check.equal(run.state, "cancelled")

-- A key that is made for the request: the same in each attempt of an execution, also in a worker.
local function keys(requests)
  local list = {}
  for i, request in ipairs(requests) do list[i] = request.headers["idempotency-key"] end
  return list
end
local function repeats(make)
  local all = {}
  for _ = 1, 2 do
    local id = servers.id()
    check.equal(make(server:url("/flaky", { id = id, times = 2 })):run().ok, true)
    local got = keys(server:requests(id))
    check.equal(#got, 3)
    check.equal(#got[1], 26)
    check.same(got, { got[1], got[1], got[1] })
    check.equal(all[got[1]], nil)
    all[got[1]] = true
  end
end
for _, thread in ipairs { "main", "worker" } do
  repeats(function(address)
    return flow.op("PostOp", { thread = thread, retry = 3, run = function(ctx)
      ctx:set("attempt", ctx.attempt)
      require "flow".http { url = address, body = "x", idempotency_key = true }:await()
    end })
  end)
end
repeats(function(address)
  local op = flow.ops.HTTPOp { url = address, body = "x", idempotency_key = true, into = "text" }
  return op:with { retry = 3 }
end)
-- Requests of one attempt have different keys, also when other ops run meanwhile.
local several = servers.id()
local address = server:url("/echo", { id = several })
run = flow.op("ManyOp", { retry = 2, run = function(ctx)
  for _ = 1, 2 do flow.http { url = address, body = "x", idempotency_key = true }:await() end
  flow.op("InnerOp", function() flow.http { url = address, body = "x", idempotency_key = true }:await() end):run()
  if ctx.attempt == 1 then error "again" end
end }):run()
check.equal(run.ok, true, tostring(run.error))
local made = keys(server:requests(several))
check.equal(#made, 6)
check.equal(made[1] ~= made[2] and made[1] ~= made[3] and made[2] ~= made[3], true)
check.equal(made[4], made[1])
check.equal(made[5], made[2])
check.equal(made[6], made[3])

-- So are the keys of ops within it, whatever starts them: in each attempt the n-th of them has the same.
local function post(to, body)
  require "flow".http { url = to, body = body, idempotency_key = true }:await()
end
local function retried(make, per_attempt)
  local seen_at = {}
  for _ = 1, 2 do
    local id = servers.id()
    local attempt = 0
    local to = server:url("/echo", { id = id })
    local again = flow.op("AgainOp", function()
      attempt = attempt + 1
      if attempt < 3 then error "again" end
    end)
    local op = make(to, again)
    check.equal(op:run({ items = { 1, 2, 3 } }).ok, true)
    local requests = server:requests(id)
    check.equal(#requests, 3 * per_attempt)
    local of_body, count_of_body, seen_keys = {}, {}, {}
    for _, request in ipairs(requests) do
      local key = request.headers["idempotency-key"]
      of_body[request.body] = of_body[request.body] or key
      check.equal(key, of_body[request.body], "the key of " .. request.body)
      count_of_body[request.body] = (count_of_body[request.body] or 0) + 1
    end
    for body, key in pairs(of_body) do
      check.equal(count_of_body[body], 3, body)
      check.equal(seen_keys[key], nil, body)
      check.equal(seen_at[key], nil, "another run")
      seen_keys[key] = true
      seen_at[key] = true
    end
  end
end
for _, thread in ipairs { "main", "worker" } do
  -- Runs, also of one op twice, and two deep.
  retried(function(to, again)
    local LeafOp = flow.op("LeafOp", { thread = thread, run = function(_, body) post(to, body) end })
    local MiddleOp = flow.op("MiddleOp", function(_, body)
      post(to, body .. "1")
      LeafOp(body .. "2"):run()
      LeafOp(body .. "3"):run()
      post(to, body .. "4")
    end)
    return flow.op("OuterOp", { retry = 3, run = function()
      MiddleOp("a"):run()
      local run = MiddleOp("b"):start()
      post(to, "c")
      run:await()
      again:run():await()
    end })
  end, 9)
  -- A group, also one whose items have a policy, and steps of a flow.
  for _, retry in ipairs { false, 2 } do
    retried(function(to, again)
      local ItemOp = flow.op("ItemOp", {
        thread = thread, needs = { item = "integer", to = "string" }, primary_input = "item", retry = retry or nil,
        run = function(ctx) post(ctx:get "to", "item" .. ctx:get "item") end,
      })
      local StepOp = flow.op("StepOp", { thread = thread, run = function(_, body) post(to, body) end })
      local inner = flow.new("inner"):add(StepOp "x"):add(StepOp "y")
      local all = flow.new("all"):data { to = to }
        :add(StepOp "begin")
        :add_grouped(ItemOp, { input = "items" })
        :add(inner)
        :add_parallel(StepOp "p", StepOp "q")
        :add(again)
      return flow.new("outer"):add(all, { retry = 3 })
    end, 8)
  end
end
-- Top flows, decorators, and the steps of a machine, which may be visited again.
retried(function(to, again)
  local StepOp = flow.op("StepOp", function(_, body) post(to, body) end)
  return flow.op("RetriedOp", { retry = 3, run = function()
    flow.new("top"):add(StepOp "1"):add(StepOp "2"):run()
    again:run():await()
  end })
end, 2)
retried(function(to, again)
  local StepOp = flow.op("StepOp", function(ctx) post(to, "inner" .. ctx:get "n") end)
  return flow.wrap(StepOp, function(ctx, run)
    for i = 1, 2 do
      ctx:set("n", i)
      run()
    end
    post(to, "outer")
    again:run():await()
  end):with { retry = 3 }
end, 3)
retried(function(to, again)
  return flow.new("top"):add(flow.op("FirstOp", function() post(to, "first") end)):add(again):with { retry = 3 }
end, 1)
retried(function(to, again)
  local visits = 0
  local machine = flow.machine {
    name = "visits", start = "go", emit = function(result) return result.event end,
    flow.step("go", {
      run = function()
        visits = visits % 3 + 1
        flow.op("VisitOp", function() post(to, "visit" .. visits) end):run()
        return { event = visits < 3 and "again" or "enough" }
      end,
      flow.on("again", flow.forward "go"), flow.on("enough", flow.forward "stop"),
    }),
    flow.step("stop", { final = true, run = function()
      again:run():await()
      return {}
    end }),
  }
  return flow.op("MachineOp", { retry = 3, run = function() machine:run():await() end })
end, 3)

-- `when` decides instead.
check.equal(count({ status = 404 }, {}, { attempts = 3, when = function(e) return e.status == 404 end }), 2)
check.equal(count({ status = 503 }, {}, { attempts = 3, when = function() return false end }), 1)
local errors = {}
check.equal(count({ status = 503, times = 2 }, {}, { attempts = 5, when = function(e, attempt)
  errors[#errors + 1] = e.kind .. attempt
  return true
end }), 3)
check.same(errors, { "http1", "http2" })

-- Timeouts are tried again, by the same rule.
local ids = servers.id()
run = flow.op("SlowOp", { retry = 2, run = function()
  return flow.http { url = server:url("/never", { id = ids }), timeout = 0.2 }
end }):run()
check.equal(run.error.kind, "timeout")
check.equal(#server:requests(ids), 2)
