-- The word after --otlp is a file or URL only if it looks like one, and the spans replace no file but one of spans.
local host, check, fs, scratch = require "host", require "check", require "flow.fs", require "scratch"
local folder, _ <close> = scratch.folder()
-- Nothing listens there.
local collector = { OTEL_EXPORTER_OTLP_ENDPOINT = "http://127.0.0.1:1", OTEL_SDK_DISABLED = "true" }
local text = 'require("flow").op("AOp", function() end):run() print("runs", ...)'

-- A script of any name is the script.
for _, name in ipairs { "deploy", "deploy.lua", "deploy.txt" } do
  local script = folder .. "/" .. name
  fs.write(script, text)
  local result = host.run(host.binary, { "--otlp", script, "word" }, { environment = collector })
  check.equal(result.stderr, "")
  check.equal(result.stdout, "runs\tword\n")
  check.equal(fs.read(script), text)
  -- Without a collector the option has no value.
  result = host.run(host.binary, { "--otlp", script }, { environment = { OTEL_EXPORTER_OTLP_ENDPOINT = "" } })
  check.equal(result.status, 2)
  check.contains(result.stderr, "option '--otlp' needs a file or URL (--otlp=FILE)")
  -- As a value it isn't replaced.
  result = host.run(host.binary, { "--otlp=" .. script, "-e", text })
  check.equal(result.status, 2)
  check.equal(result.stdout, "")
  check.contains(result.stderr, "option '--otlp': '" .. script .. "' exists and isn't a file of spans; it isn't replaced")
  check.equal(fs.read(script), text)
end

-- Files of spans, and empty ones, are replaced.
for _, name in ipairs { "spans.json", "spans.jsonl", "spans.ndjson" } do
  local path = folder .. "/" .. name
  for _ = 1, 2 do
    local result = host.script(text, {}, { before = { "--otlp", path } })
    check.equal(result.stderr, "")
    check.equal(result.stdout, "runs\n")
    check.contains(fs.read(path), '{"resourceSpans":', '"AOp"')
  end
  fs.write(path, "")
  check.equal(host.script(text, {}, { before = { "--otlp", path } }).status, 0)
  check.equal(select(2, fs.read(path):gsub("\n", "")), 1, "one line, as JSON Lines have it")
  check.contains(fs.read(path), '"AOp"')
  fs.write(path, '{"resource": 1}')
  local result = host.script(text, {}, { before = { "--otlp", path } })
  check.equal(result.status, 2)
  check.equal(fs.read(path), '{"resource": 1}')
end
local plain = folder .. "/plain"
check.equal(host.script(text, {}, { before = { "--otlp=" .. plain } }).status, 0)
check.contains(fs.read(plain), '"AOp"')

-- Other URLs are no files.
for _, options in ipairs { { "--otlp", "ftp://host/spans" }, { "--otlp=grpc://host" } } do
  local result = host.script(text, {}, { before = options })
  check.equal(result.status, 2)
  check.contains(result.stderr, "option '--otlp' needs a URL that begins with http:// or https://, not '")
end

-- The script's own text there stays too.
local own = folder .. "/own.json"
local result = host.script(text .. (" require('flow.fs').write(%q, 'mine')"):format(own), {}, { before = { "--otlp", own } })
check.equal(result.status, 1)
check.contains(result.stderr, "can't write the spans: '" .. own .. "' exists and isn't a file of spans")
check.equal(fs.read(own), "mine")

-- Neither names nor values of OTEL_RESOURCE_ATTRIBUTES show secrets.
result = host.script(text .. " require('flow').secret 'hush-hush'", {}, { before = { "--otlp=-" },
  environment = { OTEL_RESOURCE_ATTRIBUTES = "hush-hush=1,two=hush-hush" } })
check.equal(result.status, 0, result.stderr)
check.lacks(result.stdout, "hush")
check.contains(result.stdout, '"two"')

-- A device that takes no text is reported with its reason.
for option, what in pairs { report = "report", timeline = "timeline", trace = "trace", otlp = "spans" } do
  result = host.script(text, {}, { before = { "--" .. option .. "=/dev/full" } })
  check.equal(result.status, 1)
  check.contains(result.stderr, "can't write the " .. what .. ": can't write '/dev/full': No space left on device")
end
result = host.script(text, {}, { before = { "--summary=json:/dev/full" } })
check.equal(result.status, 1)
check.contains(result.stderr, "can't write the summaries: can't write '/dev/full': No space left on device")

-- `run:otlp(path)` has the same rule.
local flow = require "flow"
local run = flow.op("AOp", function() end):run()
local spans, other = folder .. "/run.spans", folder .. "/notes.txt"
for _ = 1, 2 do run:otlp(spans) end
check.contains(fs.read(spans), '"AOp"')
fs.write(other, "")
run:otlp(other)
check.contains(fs.read(other), '"AOp"')
fs.write(other, "notes")
for _, view in ipairs { "otlp", "report", "timeline", "trace" } do
  check.usage(function() run[view](run, "a\0b") end, view, "#1", "path expected, got a string with a NUL byte: 'a\\0b'")
end
local error = check.raises(function() run:otlp(other) end)
check.contains(tostring(error), "run:otlp: '" .. other .. "' exists and isn't a file of spans; it isn't replaced")
check.equal(fs.read(other), "notes")
-- A pipe or a folder isn't one either, and a folder can't be written.
check.contains(tostring(check.raises(function() run:otlp(folder) end)), "can't write '" .. folder)
