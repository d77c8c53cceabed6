-- Options about kept runs that name nothing, or have no effect, end with status 2, and write nothing.
-- clock: real: the virtual clock stands still while a program runs
local flow, fs, check, host = require "flow", require "flow.fs", require "check", require "host"
local dir = fs.temp_dir()
local script = dir .. "/script.lua"
fs.write(script, [[
  local flow = require "flow"
  flow.new("f"):add(flow.op("LoadOp", function() print "load" end)):add(flow.op("StoreOp", function() print "store" end))
    :add_finally(flow.op("EndOp", function() print "end" end)):run()]])
local function run(status, words, env)
  words[#words + 1] = script
  local result = flow.exec({ host.binary, table.unpack(words) }, { check = false, timeout = 60, env = env }):await()
  check.equal(result.status, status, table.concat(words, " ") .. ": " .. result.stderr)
  return result
end

-- Without effect: nothing is kept.
for _, words in ipairs { { "--settle", "PayOp=done" }, { "--trust-code" }, { "--store", dir .. "/elsewhere" } } do
  local name = words[1]
  local result = run(2, words)
  check.equal(result.stdout, "load\nstore\nend\n")
  check.contains(result.stderr, ("option '%s' has had no effect: no run was kept"):format(name))
end
check.equal(fs.exists(dir .. "/.flowlua"), false)
-- A script that was to be kept, but has executed nothing, is no mistake.
fs.write(dir .. "/idle.lua", "print 'nothing to do'")
for _, option in ipairs { "--keep", "--resume" } do
  local idle = flow.exec { host.binary, option, "--store", dir .. "/idle", "--trust-code", dir .. "/idle.lua" }:await()
  check.equal(idle.stderr, "")
  check.equal(idle.stdout, "nothing to do\n")
end
for _, value in ipairs { "0", "no", "off", "false", "" } do
  run(0, {}, { FLOWLUA_KEEP = value })
  check.equal(fs.exists(dir .. "/.flowlua"), false, value)
end
local other = dir .. "/asking.lua"
fs.write(other, "require 'flow'.keep { resume = true }\n" .. fs.read(script))
check.equal(flow.exec({ host.binary, "--trust-code", "--store", dir .. "/own", other }):await().stderr, "")

-- Runs that aren't there.
run(0, { "--keep" })
for _, option in ipairs { "--resume=zzzz", "--show=zzzz", "--forget=zzzz" } do
  local result = run(2, { option })
  check.equal(result.stdout, "")
  check.contains(result.stderr, "there is no run 'zzzz'")
end

-- An op of a finished run is misspelt: the run stays finished.
local before = run(0, { "--runs" }).stdout
for word, hint in pairs { StorOp = " (did you mean 'StoreOp'?)", ["f/Unknown"] = "" } do
  local result = run(2, { "--from", word })
  check.equal(result.stdout, "")
  check.match(result.stderr, "option '%-%-from': no op of run %w+, which has finished, is named '" .. word .. "'")
  check.contains(result.stderr, "'" .. word .. "'" .. hint)
end
check.equal(run(0, { "--runs" }).stdout, before)
for _, name in ipairs { "StoreOp", "f/StoreOp" } do check.equal(run(0, { "--from", name }).stdout, "store\nend\n") end
