-- Runs that earlier versions have kept are listed, verified and continued: what had finished isn't executed again.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local expected = {
  -- The output of the script when it continues, before the values.
  ["1.0.0"] = "UndoneOp\nLastOp\n",
}
local values = [[
8	255	195	169
1	integer	1
2	integer	-2
3	integer	9223372036854775807
4	integer	-9223372036854775808
5	float	0.1
6	float	-0.0
7	float	1e+300
8	float	inf
3	true	x	y	10000	nil
1.0 4.0 9.0	0.5 1.0 1.5	true	8	17	true
]]

for version, again in pairs(expected) do
  local source, folder = "Tests/stores/" .. version, flow.fs.temp_dir()
  local function copy(from, to) flow.fs.write(folder .. to, flow.fs.read(source .. from)) end
  flow.fs.mkdir(folder .. "/.flowlua")
  copy("/script.lua", "/script.lua")
  copy("/store.sqlite", "/.flowlua/store.sqlite")
  copy("/key", "/.flowlua/key")
  local function run(...)
    local result = flow.exec({ kept.binary(host.binary), ... }, { cwd = folder, check = false }):await()
    check.equal(result.status, 0, version)
    return result.stdout, result.stderr
  end
  check.contains(run("--runs", "script.lua"), "unfinished")
  check.equal(run("--verify", "script.lua"), "verified 1 run\n")
  check.contains(run("--why", "script.lua"), "\nall: 12 kept, 1 again\n")
  local printed, said = run("--resume", "script.lua")
  check.equal(printed, again .. values, version)
  check.match(said, "^%S+: r%w+: 12 kept, 2 again: 1 was undone, 1 had failed\n$")
  check.contains(run("--runs", "script.lua"), " finished")
  check.equal(run("--verify", "script.lua"), "verified 1 run\n")
end
