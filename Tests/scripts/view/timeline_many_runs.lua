-- A page of very many runs has those that failed, the longest and a sample, and says how many it leaves out.
local host, check, fs, json = require "host", require "check", require "flow.fs", require "flow.json"
local scratch = require "scratch"
local folder, _ <close> = scratch.folder()
local file = folder .. "/page.html"

local result = host.script([[
  local flow = require "flow"
  local AOp = flow.op("AOp", function() end)
  local LongOp = flow.op("LongOp", function() flow.sleep(60) end)
  local FailOp = flow.op("FailOp", function() error "no luck" end)
  for i = 1, 2500 do
    if i == 1250 then LongOp:run()
    elseif i == 2500 then pcall(function() FailOp:start():await() end) else AOp:run() end
  end
]], {}, { before = { "--virtual-clock", "--timeline", file } })
check.equal(result.stderr, "")
local page = json.decode(fs.read(file):match '<script type="application/json" id="data">(.-)</script>')
check.equal(#page.runs, 2000)
check.equal(page.omitted, 500)
local found = {}
for _, run in ipairs(page.runs) do
  found[run.name] = (found[run.name] or 0) + 1
  check.equal(run.omitted, 0)
  check.equal(#run.spans.name, 1)
end
check.same(found, { AOp = 1998, LongOp = 1, FailOp = 1 })
