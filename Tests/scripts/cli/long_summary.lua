-- The JSON summary of a long run is written in portions, on stderr and to a file, and the file is replaced at the end.
local flow, check, host = require "flow", require "check", require "host"
local fs, json = require "flow.fs", flow.json
local folder <close> = setmetatable({ path = fs.temp_dir() }, {
  __close = function(self) fs.remove(self.path, { recursive = true }) end,
})
local file = folder.path .. "/summary"
local text = [[
  local flow, fs = require "flow", require "flow.fs"
  local LongOp = flow.op("LongOp", function(ctx)
    for i = 1, 2000 do ctx:log(("%d "):rep(30):format(table.unpack(setmetatable({}, { __index = function() return i end }), 1, 30))) end
  end)
  local long, short = flow.new("long"):add(LongOp), flow.new("short"):add(flow.op("ShortOp", function() end))
  long:run()
  short:run()
  local path = ...
  if path then io.write(fs.read(path)) end
]]
local function check_runs(lines)
  local runs = {}
  for line in lines:gmatch "([^\n]*)\n" do runs[#runs + 1] = json.decode(line) end
  check.equal(#runs, 2)
  check.equal(runs[1].run, "long")
  check.equal(#runs[1].events, 2002)
  for i = 1, 2000 do
    local event = runs[1].events[i + 1]
    check.equal(event.kind, "log")
    check.equal(event.message, (i .. " "):rep(30))
  end
  check.equal(runs[1].events[2002].kind, "finish")
  check.equal(#runs[2].events, 2)
end

local result = host.script(text, {}, { before = { "--virtual-clock", "--summary=json" } })
check.equal(result.status, 0)
check_runs(result.stderr)

-- While the script runs the file has its earlier content.
fs.write(file, "old")
result = host.script(text, { file }, { before = { "--virtual-clock", "--summary=json:" .. file } })
check.equal(result.stderr, "")
check.equal(result.stdout, "old")
check_runs(fs.read(file))
check.equal(#fs.list(folder.path), 1)

-- An output that no file can replace is written at the end.
result = host.script(text, {}, { before = { "--virtual-clock", "--summary=json:-" } })
check_runs(result.stdout)
local made = folder.path .. "/made"
fs.mkdir(made)
result = host.script(("require('flow').fs.remove(%q)"):format(made) .. text .. (" fs.mkdir(%q)"):format(made), {},
  { before = { "--virtual-clock", "--summary=json:" .. made .. "/summary" } })
check.equal(result.stderr, "")
check_runs(fs.read(made .. "/summary"))

-- A file that can't be written at the end stays as it is, and nothing else is left.
fs.write(file, "old")
result = host.script(text .. [[ os.remove(...) fs.mkdir(...) ]], { file },
  { before = { "--virtual-clock", "--summary=json:" .. file } })
check.equal(result.status, 1)
check.contains(result.stderr, "can't write the summaries: can't write '" .. file .. "'")
check.equal(#fs.list(folder.path), 2)

-- The text never is in memory as a whole.
result = host.script([[
  local flow, fs = require "flow", require "flow.fs"
  local function peak() return fs.read "/proc/self/status":match "VmHWM:%s*(%d+) kB" * 1024 end
  local flow_of_ops = flow.new("ops")
  for _ = 1, 50000 do flow_of_ops:add(flow.ops.PrintOp("hello")) end
  local before = peak()
  flow_of_ops:run()
  print(peak() - before)
]], {}, { before = { "--virtual-clock", "--summary=json:" .. file .. "2" } })
check.equal(result.stderr, "")
local grown, size = tonumber(result.stdout), fs.stat(file .. "2").size
-- A sanitizer keeps freed memory for a while.
assert(grown < size or os.getenv "FLOWLUA_SANITIZER", grown .. " bytes more for a text of " .. size)
