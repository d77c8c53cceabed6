-- --timeline and run:timeline make a page that needs nothing else; its data are those of the run's events.
local host, check, fs, json = require "host", require "check", require "flow.fs", require "flow.json"
local scratch = require "scratch"

local folder, _ <close> = scratch.folder()
local file = folder .. "/page.html"

-- The data of a page; the rest of it is the same for all.
local function read(text)
  local head, data, rest = text:match '^(.*<script type="application/json" id="data">)(.-)(</script>.*)$'
  check.equal(data ~= nil, true, "data in the page")
  check.contains(head, "default-src 'none'", "<!doctype html>")
  check.lacks(head .. rest, "http://", "https://", "/* data */", "/* timeline")
  check.equal(select(2, rest:gsub("</script", "")), 2)
  return json.decode(data)
end

-- The numbers of a column of differences.
local function sums(column)
  local all, sum = {}, 0
  for i, difference in ipairs(column) do
    sum = sum + difference
    all[i] = sum
  end
  return all
end

local source = [[
  local flow = require "flow"
  local CheckOp = flow.op("CheckOp", function() flow.sleep(1) end)
  local UploadOp = flow.op("UploadOp", { needs = { image = "integer" }, retry = { attempts = 3, delay = 0.5 },
    run = function(ctx)
      flow.sleep(1)
      if ctx.index == 3 and ctx.attempt < 3 then ctx:fail "refused" end
      if ctx.index == 5 then ctx:fail("too large", { retry = false }) end
    end })
  local run = flow.new("publish"):data { images = { 1, 2, 3, 4, 5 } }:add(CheckOp)
    :add_grouped(UploadOp, { input = "images", max_concurrent = 2, allow_failure = true }):run()
]]
local result = host.script(source .. [[
  local json = require "flow.json"
  local events = {}
  for i, event in ipairs(run:events()) do
    events[i] = { kind = event.kind, time = event.time, op = event.op, index = event.index, attempt = event.attempt }
  end
  print(json.encode(events))
]], {}, { before = { "--virtual-clock", "--timeline", file } })
check.equal(result.status, 0)
local page = read(fs.read(file))
check.equal(page.stage, "final")
check.equal(#page.runs, 1)
local run = page.runs[1]
check.equal(run.name, "publish")
check.equal(run.state, "succeeded")
check.contains(run.place, "/")
check.equal(run.duration, 6)
check.equal(run.numbers.ops, 6)
check.equal(run.numbers.failed, 1)
check.equal(run.numbers.repeated, 2)
check.equal(run.numbers.work, 8)
check.equal(run.omitted, 0)
check.contains(run.summary, "[UploadOp #5] DidFinish: ")

-- Each start and finish of an op is in the columns.
local spans = run.spans
local name, index, start, parent = sums(spans.name), sums(spans.index), sums(spans.start), sums(spans.parent)
local seen = {}
for i = 1, #name do
  local title = run.names[name[i] + 1] .. (index[i] > 0 and " #" .. index[i] or "")
  if spans.kind[i] == 0 then
    seen["start " .. title] = start[i] / 1e6
    seen["finish " .. title] = (start[i] + spans.length[i]) / 1e6
  end
  check.equal(parent[i] < i - 1, true, "a parent comes first")
end
local count = 0
for _, event in ipairs(json.decode(result.stdout)) do
  local key = event.kind .. " " .. event.op .. ((event.index or 0) > 0 and " #" .. event.index or "")
  if seen[key] then
    count = count + 1
    -- A retried op has one start for each attempt; the span has the first.
    if event.kind == "finish" or event.attempt == 1 then check.equal(seen[key], event.time, key) end
  end
end
check.equal(count >= 12, true, tostring(count))
-- Place, start, length, whether it failed, the delay after it, and the error.
local third
for i = 1, #name do if index[i] == 3 then third = i - 1 end end
check.same(run.attempts, {
  { third, 2000000, 1000000, 1, 500000, "refused" }, { third, 3500000, 1000000, 1, 500000, "refused" },
  { third, 5000000, 1000000, 0, 0, "" },
})
check.equal(run.problems[1].message, "too large")
check.equal(run.problems[1].severity, "error")
check.equal(run.problems[2].severity, "warning")
-- The path has no gaps, and is as long as the run.
local at = 0
for _, step in ipairs(run.path) do
  check.equal(math.abs(step.start - at) < 1e-6, true, step.title)
  at = step.start + step.length
end
check.equal(at, run.duration)

-- The method.
result = host.script(source .. "io.write(run:timeline())", {}, { before = { "--virtual-clock" } })
check.equal(read(result.stdout).runs[1].name, "publish")
check.equal(read(result.stdout).stage, "excerpt")
result = host.script(source .. ("run:timeline(%q)"):format(file), {}, { before = { "--virtual-clock" } })
check.equal(result.stdout, "")
check.equal(read(fs.read(file)).runs[1].numbers.ops, 6)

-- Nothing in a name is markup, and everything arrives as it was; what isn't UTF-8 is replaced.
local names = {
  "</script><script>alert(1)</script>", "<!--", "a\"b'c\\d", "line\nbreak\ttab\0nul", "\u{202e}right to left",
  "{{x}} /* data */ /* timeline.js */", ("long"):rep(2500), "invalid \xff\xfe.",
}
for _, given in ipairs(names) do
  result = host.script([[
    local flow = require "flow"
    local name = ...
    local FailOp = flow.op(name, function(ctx) ctx:fail(name) end)
    local run = flow.new(name):add(FailOp):run()
    io.write(run:timeline())
  ]], { (given:gsub("%z", "")) }, { before = { "--virtual-clock" } })
  local shown = (given:gsub("%z", "")):gsub("\xff\xfe", "\u{fffd}\u{fffd}")
  local data = read(result.stdout)
  check.equal(data.runs[1].name, shown)
  check.equal(data.runs[1].names[1], shown)
end

-- A file that can't be written.
local gone = folder .. "/gone"
fs.mkdir(gone)
result = host.script(source .. "flow.fs.remove(arg[1])", { gone }, {
  before = { "--virtual-clock", "--timeline", gone .. "/page.html" } })
check.equal(result.status, 1)
check.contains(result.stderr, "can't write the timeline: ", "/gone/page.html", "No such file or directory")
result = host.script(source .. ("run:timeline(%q)"):format(folder .. "/none/x.html"), {}, { before = { "--virtual-clock" } })
check.contains(result.stderr, "/none/x.html", "No such file or directory")
result = host.run(host.binary, { "--timeline" })
check.equal(result.status, 2)
check.contains(result.stderr, "option '--timeline' needs a file: --timeline FILE")
