-- While a script executes, the page of --timeline is written again and again, always a whole file; the last is final.
-- clock: real: the page is written at times of the machine's clock
local flow, host, check, fs = require "flow", require "host", require "check", require "flow.fs"
local json, scratch = require "flow.json", require "scratch"

local folder, _ <close> = scratch.folder()
local file = folder .. "/page.html"

local function data(text)
  check.contains(text, "<!doctype html>", "</html>")
  return json.decode(text:match '<script type="application/json" id="data">(.-)</script>')
end

-- Ops that read the page of their own run until it shows them, and then the one after that.
local source = [[
  local flow, fs, json = require "flow", require "flow.fs", require "flow.json"
  local file = ...
  local function wait_for(text)
    while true do
      local page = fs.exists(file) and fs.read(file)
      if page and page:find(text, 1, true) then
        assert(not page:find("hush-5150", 1, true), "a secret in a live page")
        return json.decode(page:match '<script type="application/json" id="data">(.-)</script>')
      end
      flow.sleep(0.01)
    end
  end
  local function describe(page)
    local run = page.runs[1]
    local lengths = run.spans.length
    print(page.stage, page.every, os.time() - page.written < 100, run.name, run.state, lengths[#lengths])
  end
  local FirstOp = flow.op("FirstOp", function(ctx)
    ctx:log "it is hush-5150"
    describe(wait_for '"FirstOp"')
  end)
  local SecondOp = flow.op("SecondOp", function()
    describe(wait_for '"SecondOp"')
    flow.op("InnerOp", function() wait_for '"InnerOp"' end):run()
  end)
  local run = flow.new("watched"):add(FirstOp):add(SecondOp):run { key = flow.secret "hush-5150" }
  assert(run.ok)
]]
local result = host.script(source, { file }, { before = { "--timeline", file } })
check.equal(result.stderr, "")
check.equal(result.status, 0)
local lines = {}
for line in result.stdout:gmatch "[^\n]+" do lines[#lines + 1] = line end
check.equal(#lines, 2)
for _, line in ipairs(lines) do
  -- It shows an op that is running.
  assert(line:find "^live\t%d+\ttrue\twatched\trunning\t%-1$", line)
end
local page = data(fs.read(file))
check.equal(page.stage, "final")
check.equal(page.every, nil)
check.equal(page.written, nil)
check.equal(page.runs[1].state, "succeeded")
check.equal(page.runs[1].numbers.ops, 3)
-- No temporary file is left.
check.equal(#fs.list(folder), 1)

-- A process that is killed leaves the page as it was last.
fs.remove(file)
result = host.signalled(host.binary, { "--timeline", file, "-e", [[
  local flow, fs = require "flow", require "flow.fs"
  flow.new("killed"):add(flow.op("SlowOp", function()
    while not fs.exists("]] .. file .. [[") do flow.sleep(0.01) end
    print "ready" io.stdout:flush()
    flow.sleep(1000)
  end)):run()
]] }, "KILL")
page = data(fs.read(file))
check.equal(page.stage, "live")
check.equal(page.runs[1].name, "killed")

-- A page that can't be written any more is reported once, at the end. The script isn't disturbed.
local gone = folder .. "/gone"
fs.mkdir(gone)
result = host.script([[
  local flow = require "flow"
  flow.fs.remove(...)
  flow.new("long"):add(flow.op("LongOp", function() flow.sleep(0.5) end)):run()
  print "done"
]], { gone }, { before = { "--timeline", gone .. "/page.html" } })
check.equal(result.stdout, "done\n")
check.equal(result.status, 1)
local _, count = result.stderr:gsub("can't write the timeline", "")
check.equal(count, 1, result.stderr)

-- An output that isn't a file gets the final page only.
result = host.run("bash", { "-c", '"$1" --timeline >(cat >"$2") -e "$3"; for i in {1..1000}; do ' ..
  '[[ -s $2 ]] && break; sleep 0.01; done', "bash", host.binary, file .. "2",
  'local flow = require "flow" flow.op("LongOp", function() flow.sleep(0.5) end):run()' })
check.equal(result.stderr, "")
page = data(fs.read(file .. "2"))
check.equal(page.stage, "final")

-- On the virtual clock there is only the final one.
fs.remove(file)
result = host.script([[
  local flow, fs = require "flow", require "flow.fs"
  local file = ...
  flow.op("LongOp", function() flow.sleep(100) print(fs.exists(file)) end):run()
]], { file }, { before = { "--virtual-clock", "--timeline", file } })
check.equal(result.stdout, "false\n")
check.equal(data(fs.read(file)).stage, "final")
