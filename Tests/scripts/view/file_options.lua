-- The options --report and --trace write all runs of a script, however it ends.
local host, check, fs, json = require "host", require "check", require "flow.fs", require "flow.json"
local scratch = require "scratch"

local folder, _ <close> = scratch.folder()
local report, trace = folder .. "/report.md", folder .. "/trace.json"
local head = [[
  local flow = require "flow"
  local AOp = flow.op("AOp", function() flow.sleep(1) end)
  local FailOp = flow.op("FailOp", function(ctx) ctx:fail "no luck" end)
]]

local function options(...) return { "--virtual-clock", "--report", report, "--trace=" .. trace, ... } end

-- Reads both files, and removes them.
local function views()
  local text, decoded = fs.read(report), json.decode(fs.read(trace))
  check.equal(#fs.list(folder), 2)
  fs.remove(report)
  fs.remove(trace)
  local processes, outcomes = {}, {}
  for _, event in ipairs(decoded.traceEvents) do
    if event.name == "process_name" then processes[event.pid] = event.args.name end
    if event.name == "process_labels" then outcomes[event.pid] = event.args.labels end
  end
  return text, processes, outcomes, decoded
end

-- Two runs of one name, one within an op of another, one that fails.
local result = host.script(head .. [[
  local child = flow.new("child"):add(AOp):add(AOp)
  flow.new("one"):add(AOp):run()
  flow.sleep(2)
  flow.new("one"):add(flow.op("OuterOp", function() child:run() end)):run()
  flow.new("bad"):add(FailOp):run().ok = nil
]], {}, { before = options() })
check.equal(result.status, 1)
local text, processes, outcomes, decoded = views()
check.same(processes, { "one", "one", "bad" })
check.same(outcomes, { "succeeded", "succeeded", "failed" })
check.contains(text, "# Runs of `/", "| `one` | succeeded | 1 s | 1 | 0 |\n| `one` | succeeded | 2 s | 3 | 0 |\n",
  "| `bad` | failed | 0 s | 1 | 1 |", "| `one/OuterOp/child/AOp` | 1 s | 50 % |",
  "- `bad/FailOp` failed: `no luck`")
local paths, times = {}, {}
for _, event in ipairs(decoded.traceEvents) do
  if event.ph == "X" and event.pid == 2 and event.cat ~= "wait" then
    paths[#paths + 1] = event.args.path
    times[#times + 1] = event.ts
  end
end
check.same(paths, {
  "one", "one/OuterOp", "one/OuterOp/child", "one/OuterOp/child/AOp", "one/OuterOp/child/AOp",
})
check.same(times, { 3000000, 3000000, 3000000, 3000000, 4000000 })

-- The script fails, ends by os.exit, or starts nothing.
for text_of_end, expected in pairs {
  ["error 'x'"] = { 1, "cancelled" }, ["require 'flow.fs'.temp_dir() flow.sleep(0.5) os.exit(3)"] = { 3, "running" },
  ["flow.sleep(0.5) os.exit(4, true)"] = { 4, "running" },
} do
  result = host.script(head .. "flow.new('open'):add(AOp):start() " .. text_of_end, {}, { before = options() })
  check.equal(result.status, expected[1], text_of_end)
  text, processes, outcomes = views()
  check.same(processes, { "open" })
  check.same(outcomes, { expected[2] }, text_of_end)
  check.contains(text, "## `open` ")
end
for _, nothing in ipairs { "", "require 'flow'" } do
  check.equal(host.script(nothing, {}, { before = options() }).status, 0)
  if nothing ~= "" then
    text, processes = views()
    check.same(processes, {})
    check.contains(text, "Nothing was started.")
  end
end

-- A signal ends it.
for signal, status in pairs { TERM = 143, HUP = 129, INT = 130 } do
  result = host.signalled(host.binary, { "--report", report, "--trace", trace, "-e", head .. [[
    local SlowOp = flow.op("SlowOp", function() print "ready" io.stdout:flush() flow.sleep(1000) end)
    flow.new("slow"):add(SlowOp):run()]] }, signal)
  check.equal(result.status, status, signal)
  text, processes, outcomes = views()
  check.same(processes, { "slow" }, signal)
  check.same(outcomes, { "cancelled" }, signal)
  check.contains(text, "## `slow` was cancelled", "| `SlowOp` | 1 |")
end

-- `-` is standard output; a pipe isn't replaced.
result = host.script(head .. "AOp:run()", {}, { before = { "--virtual-clock", "--report", "-" } })
check.contains(result.stdout, "## `AOp` succeeded")
result = host.run("bash", { "-c", '"$1" --virtual-clock --trace >(cat >"$2") -e "$3"; for i in {1..1000}; do ' ..
  '[[ -s $2 ]] && break; sleep 0.01; done', "bash", host.binary, trace, head .. "AOp:run()" })
check.equal(result.stderr, "")
assert(fs.exists(trace))

-- A file that can't be written any more is an error; the other file is written.
fs.remove(trace)
for _, option in ipairs { "report", "trace" } do
  local other = option == "report" and "trace" or "report"
  local gone = fs.temp_dir()
  result = host.script(head .. "AOp:run() flow.fs.remove(arg[1])", { gone }, {
    before = { "--virtual-clock", "--" .. option, gone .. "/x", "--" .. other, trace } })
  check.equal(result.status, 1)
  check.contains(result.stderr, "can't write the " .. option .. ": ", "'" .. gone .. "/x'", "No such file")
  assert(fs.exists(trace))
  fs.remove(trace)
  -- Wrong use.
  for _, words in ipairs { { "--" .. option }, { "--" .. option .. "=" }, { "--" .. option, "--check" } } do
    result = host.run(host.binary, words)
    check.equal(result.status, 2)
    check.contains(result.stderr, "option '--" .. option .. "' needs a file: --" .. option .. " FILE")
  end
end
