-- A script is warned of a flow that it has built and never run, and of `cache` where no result is kept.
local check, flow, host = require "check", require "flow", require "host"

local folder = flow.fs.temp_dir()
local function said(text, option)
  local words = { host.binary, "script.lua" }
  if option then table.insert(words, 2, option) end
  flow.fs.write(folder .. "/script.lua", 'local flow = require "flow"\n' .. text)
  local result = flow.exec(words, { check = false, cwd = folder, env = { FLOWLUA_KEEP = false } }):await()
  return result.stderr
end
local op = 'local op = flow.op("AOp", function() end)\n'
local built = 'local f = flow.new("f"):add(op)\n'

local warning = "warning: flow 'f' at script.lua:3 was built, but nothing was run: flow:run() is missing\n"
check.contains(said(op .. built), warning)
check.contains(said(op .. built .. 'local g = flow.new("g"):add(f)'), warning)
check.contains(said(op .. built .. "print(f, f.name)"), warning)
for _, use in ipairs {
  "f:run()", "f:start()", "op:run()", "flow.spawn(print)", "print(f:dot())", "print(f:mermaid())", "f:check()",
  'require("flow.testing").run(f)', "os.exit(0)",
} do
  check.equal(said(op .. built .. use), "", use)
end
check.equal(said(op .. 'local f = flow.new("f")'), "")
check.lacks(said(op .. built .. 'error "enough"'), "warning")
-- A session is for trying things.
local session = flow.exec({ host.binary, "-i" }, { stdin = op .. built, env = { FLOWLUA_KEEP = false } }):await()
check.lacks(session.stderr, "was built")

warning = "warning: 'cache' at script.lua:2 has had no effect: without --keep or flow.keep() no result is kept\n"
for _, value in ipairs { "true", "{ expires = 60 }" } do
  local cached = 'local op = flow.op("AOp", { cache = ' .. value .. ", run = function() end })\n"
  check.contains(said(cached .. "op:run() op:run()"), warning)
  check.equal(said(cached .. "flow.keep() op:run()"):match "warning[^\n]*", nil)
  check.lacks(said(cached .. "op:run()", "--keep"), "warning")
  check.equal(said(cached), "")
end
check.equal(said 'flow.op("AOp", { cache = false, run = function() end }):run()', "")
