-- --otlp sends the spans to a collector however the script ends; requests of ops carry the span of their op.
-- clock: real: requests take time
local host, check, flow, json = require "host", require "check", require "flow", require "flow.json"
local fs, scratch, servers = require "flow.fs", require "scratch", require "servers"
local server <close> = servers.hostile()
local folder, _ <close> = scratch.folder()

local head = [[
  local flow = require "flow"
  local AOp = flow.op("AOp", function() flow.sleep(0.001) end)
]]

-- The requests for one script: its text after `head`, options, and variables.
local function export(text, options, environment, path)
  local id = servers.id()
  local url = server:url(path or "/echo", { id = id })
  local variables = {}
  for name, value in pairs(environment or {}) do variables[name] = value:gsub("URL", { URL = url }) end
  for place, word in ipairs(options) do options[place] = word == "URL" and url or word end
  local result = host.script(head .. text, {}, { before = options, environment = variables })
  return result, server:requests(id), url
end

-- Names of spans, and the trace.
local function names(request)
  local found, trace = {}, nil
  for _, span in ipairs(json.decode(request.body).resourceSpans[1].scopeSpans[1].spans) do
    found[#found + 1] = span.name
    trace = span.traceId
  end
  return table.concat(found, " "), trace
end

-- The URL of the option, and the headers of the environment.
local result, requests, url = export("flow.new('one'):add(AOp):run() AOp:run()", { "--otlp", "URL" },
  { OTEL_EXPORTER_OTLP_HEADERS = "authorization=Bearer%20s3cret,x-team = a" })
check.equal(result.status, 0)
check.equal(result.stderr, "")
check.equal(#requests, 1)
check.equal(requests[1].method, "POST")
check.equal(requests[1].headers["content-type"], "application/json")
check.equal(requests[1].headers.authorization, "Bearer s3cret")
check.equal(requests[1].headers["x-team"], "a")
check.equal(requests[1].headers.traceparent, nil)
check.equal(names(requests[1]), "one AOp AOp")
check.contains(requests[1].body, '"service.name","value":{"stringValue":"' .. "lua_")

-- The endpoints of the environment; a value isn't needed before another option or the script.
for _, options in ipairs { { "--otlp", "-e", "" }, { "--otlp=" }, { "--otlp", "--no-progress" } } do
  result, requests = export("AOp:run()", options, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = "URL" })
  check.equal(result.stderr, "")
  check.equal(#requests, 1)
end
local plain = server:url "/echo":gsub("/echo$", "")
for _, environment in ipairs { { OTEL_EXPORTER_OTLP_ENDPOINT = plain }, { OTEL_EXPORTER_OTLP_ENDPOINT = plain .. "/" } } do
  result = host.script(head .. "AOp:run()", {}, { before = { "--otlp=" }, environment = environment })
  check.equal(result.stderr:match "POST %S+", "POST " .. plain .. "/v1/traces")
end
result = host.script(head .. "AOp:run()", {}, { before = { "--otlp", plain } })
check.equal(result.stderr:match "POST %S+", "POST " .. plain .. "/v1/traces")
local script = folder .. "/script.lua"
fs.write(script, head .. "print 'runs' AOp:run()")
result = host.run(host.binary, { "--otlp", script }, { environment = { OTEL_EXPORTER_OTLP_ENDPOINT = plain } })
check.equal(result.stdout, "runs\n")
check.contains(fs.read(script), "runs")
result = host.run(host.binary, { "--otlp", script }, { environment = { OTEL_EXPORTER_OTLP_ENDPOINT = "" } })
check.equal(result.status, 2)
check.contains(result.stderr, "option '--otlp' needs a file or URL (--otlp=FILE), or OTEL_EXPORTER_OTLP_ENDPOINT")

-- A collector that fails is reported, and doesn't fail the script; a file that can't be written does.
result, requests = export("AOp:run()", { "--otlp", "URL" }, nil, "/status")
check.equal(#requests <= 1, true)
check.equal(result.status, 0)
check.contains(result.stderr, "can't send the spans: POST ")
result = host.script(head .. "AOp:run()", {}, { before = { "--otlp", server:url("/x", nil, "refused") } })
check.equal(result.status, 0)
check.contains(result.stderr, "can't send the spans: POST http://127.0.0.1")
result = host.script(head .. "AOp:run()", {}, { before = { "--otlp", server:url("/x", nil, "silent") },
  environment = { OTEL_EXPORTER_OTLP_TIMEOUT = "50" } })
check.equal(result.status, 0)
check.contains(result.stderr, "can't send the spans: ")
local gone = fs.temp_dir()
result = host.script(head .. "AOp:run() flow.fs.remove(arg[1])", { gone }, { before = { "--otlp=" .. gone .. "/file" } })
check.equal(result.status, 1)
check.contains(result.stderr, "can't write the spans: ")
-- Nothing was started: nothing is sent.
result, requests = export("", { "--otlp", "URL" })
check.equal(result.status, 0)
check.equal(#requests, 0)

-- A collector that is busy gets the request again, and so does one that closes the connection.
local function busy(status, times, options, environment)
  local id = servers.id()
  options = options or {}
  options.id, options.status, options.times = id, status, times
  local target = server:url("/flaky", options)
  local began = flow.now()
  local sent = host.script(head .. "AOp:run()", {}, { before = { "--otlp", target }, environment = environment })
  check.equal(sent.status, 0)
  return sent, server:requests(id), flow.now() - began
end
for _, status in ipairs { 429, 502, 503, 504, 0 } do
  result, requests = busy(status, 2)
  check.equal(result.stderr, "")
  check.equal(#requests, 3, status)
  check.equal(requests[1].body, requests[3].body)
end
-- Other statuses aren't tried again.
for _, status in ipairs { 400, 401, 408, 500 } do
  result, requests = busy(status, 1)
  check.contains(result.stderr, "-> " .. status)
  check.equal(#requests, 1, status)
end
-- `Retry-After` is respected; a longer time than is left isn't waited for.
local took
result, requests, took = busy(503, 1, { header = "Retry-After: 1" })
check.equal(result.stderr, "")
check.equal(#requests, 2)
assert(took >= 1, took)
result, requests = busy(503, 1, { header = "Retry-After: 3600" })
check.contains(result.stderr, "-> 503")
check.equal(#requests, 1)
-- The attempts have an end, in number and in time.
result, requests = busy(503, 100)
check.contains(result.stderr, "-> 503", ", after 5 attempts")
check.equal(#requests, 5)
result, requests = busy(503, 100, { header = "Retry-After: 60" }, { OTEL_EXPORTER_OTLP_TIMEOUT = "50000" })
check.contains(result.stderr, "-> 503")
check.equal(#requests, 1)

-- A redirect that would lose the spans isn't followed; the others are.
for _, status in ipairs { 301, 302, 303 } do
  local id = servers.id()
  result = host.script(head .. "AOp:run()", {}, { before = {
    "--otlp", server:url("/redirect", { status = status, to = server:url("/echo", { id = id }) }) } })
  check.equal(result.status, 0)
  check.equal(result.stderr:match "%-> (%d+)", tostring(status), result.stderr)
  check.equal(#server:requests(id), 0)
end
for _, status in ipairs { 307, 308 } do
  local id = servers.id()
  result = host.script(head .. "AOp:run()", {}, { before = {
    "--otlp", server:url("/redirect", { status = status, to = server:url("/echo", { id = id }) }) } })
  check.equal(result.stderr, "")
  check.equal(names(server:requests(id)[1]), "AOp")
end

-- Spans that a collector rejects are reported.
for body, message in pairs {
  ['{"partialSuccess": {"rejectedSpans": "7", "errorMessage": "full"}}'] = "can't send the spans: the collector has rejected 7 of them",
  ['{"partialSuccess":{"rejectedSpans":3}}'] = "can't send the spans: the collector has rejected 3 of them",
  ['{"partialSuccess":{"rejectedSpans":"0"}}'] = "", ["{}"] = "", [""] = "", ['{"rejectedSpans"'] = "",
} do
  result = host.script(head .. "AOp:run()", {}, { before = { "--otlp", server:url("/reply", { body = body }) } })
  check.equal(result.status, 0)
  check.equal(result.stderr:gsub("^[^:]*: ", ""):gsub("\n$", ""), message)
end

-- OTEL_SDK_DISABLED: nothing is sent.
for value, count in pairs { ["true"] = 0, TRUE = 0, ["false"] = 1, ["1"] = 1 } do
  result, requests = export("AOp:run()", { "--otlp", "URL" }, { OTEL_SDK_DISABLED = value })
  check.equal(result.stderr, "")
  check.equal(#requests, count, value)
end

-- However the script ends.
for text, status in pairs {
  ["AOp:start() error 'x'"] = 1, ["AOp:start() os.exit(3)"] = 3, ["AOp:start() os.exit(4, true)"] = 4,
  ["flow.op('FailOp', function() error 'no' end):run()"] = 1,
} do
  result, requests = export(text, { "--otlp", "URL" })
  check.equal(result.status, status, text)
  check.equal(#requests, 1, text)
end
-- Also when the libraries for TLS were used before.
local nginx <close> = servers.nginx()
for _, ending in ipairs { "", "os.exit(3)", "os.exit(3, true)" } do
  local target = nginx:url("/v1/traces", nil, "https1")
  result = host.script(head .. ("flow.http { url = %q, check = false }:await() AOp:run() "):format(target) .. ending, {},
    { before = { "--otlp", target }, environment = { SSL_CERT_FILE = nginx.ca_pem } })
  check.equal(result.status, ending == "" and 0 or 3)
  check.contains(result.stderr, "can't send the spans: POST " .. target .. " -> 404")
end
for signal, status in pairs { TERM = 143, HUP = 129, INT = 130 } do
  local id = servers.id()
  result = host.signalled(host.binary, { "--otlp", server:url("/echo", { id = id }), "-e", head .. [[
    flow.op("SlowOp", function() print "ready" io.stdout:flush() flow.sleep(1000) end):run()
  ]] }, signal)
  check.equal(result.status, status)
  requests = server:requests(id)
  check.equal(#requests, 1, signal)
  check.equal(names(requests[1]), "SlowOp")
  check.contains(requests[1].body, '"flowlua.outcome","value":{"stringValue":"cancelled"}')
end

-- After a signal a collector that hangs delays the end for seconds, not for as long as OTEL_EXPORTER_OTLP_TIMEOUT allows.
for signal, status in pairs { TERM = 143, INT = 130 } do
  local began = flow.now()
  result = host.signalled("env", { "OTEL_EXPORTER_OTLP_TIMEOUT=90000", host.binary, "--otlp",
    server:url("/never"), "-e", head .. [[
    flow.op("SlowOp", function() print "ready" io.stdout:flush() flow.sleep(1000) end):run()
  ]] }, signal)
  check.equal(result.status, status)
  check.contains(result.stdout, "can't send the spans: ")
  assert(flow.now() - began < 60, signal)
end

-- Requests of ops carry the trace with the span of their op, unless they say otherwise; in workers too.
local requester = [[
  local url = "URL"
  local function get(who, headers) return flow.http { url = url .. "&who=" .. who, headers = headers }:await() end
  get "outside"
  local run = flow.new("ask")
    :add(flow.op("GetOp", function() get("plain") get("own", { TraceParent = "mine" }) end))
    :add(flow.ops.HTTPOp { url = url .. "&who=op", into = "page" })
    :add(flow.op("WorkOp", { thread = "worker", run = function()
      flow.http(url .. "&who=worker"):await()
    end })):run()
  assert(run.ok, run.error)
]]
local spans = folder .. "/spans.json"
local function ask(options, environment)
  local id = servers.id()
  local text = requester:gsub("URL", { URL = server:url("/echo", { id = id }) })
  result = host.script(head .. text, {}, { before = options, environment = environment })
  check.equal(result.stderr, "")
  local sent = {}
  for _, request in ipairs(server:requests(id)) do
    sent[request.query.who[1]] = request.headers.traceparent or "none"
    sent.state = request.headers.tracestate
  end
  return sent
end
local sent = ask { "--otlp", spans }
local paths, list = {}, json.read(spans).resourceSpans[1].scopeSpans[1].spans
for _, span in ipairs(list) do
  for _, attribute in ipairs(span.attributes) do
    if attribute.key == "flowlua.path" then
      paths[("00-%s-%s-01"):format(span.traceId, span.spanId)] = attribute.value.stringValue
    end
  end
end
check.same({ sent.outside, sent.own, paths[sent.plain], paths[sent.op], paths[sent.worker] },
  { "none", "mine", "ask/GetOp", "ask/HTTPOp", "ask/WorkOp" })
local request = list[#list]
check.equal(request.name, "GET")
check.equal(request.kind, 3)
local text = json.encode(request.attributes)
check.contains(text, '"http.request.method"', '"url.full"', '"http://127.0.0.1:' .. server.http .. '/echo"',
  '"server.port"', '"http.response.status_code"')
check.lacks(json.encode(list), "who=")
local trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
sent = ask({}, { TRACEPARENT = "00-" .. trace .. "-" .. parent .. "-01", TRACESTATE = "a=b" })
check.equal(sent.outside, "00-" .. trace .. "-" .. parent .. "-01")
check.equal(sent.plain:match "^00%-(%x+)%-%x+%-01$", trace)
check.equal(sent.own, "mine")
check.equal(sent.state, "a=b")
assert(sent.plain ~= sent.outside and sent.worker ~= sent.op)
sent = ask({}, {})
check.same({ sent.outside, sent.plain, sent.op, sent.worker, sent.state }, { "none", "none", "none", "none" })
