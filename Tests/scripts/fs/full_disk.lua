-- A file that doesn't fit on the disk leaves the old one unchanged, and nothing beside it.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

local dir = fs.temp_dir()
local script = dir .. "/script.lua"
fs.write(script, [[
local fs = require "flow.fs"
local disk = ...
fs.write(disk .. "/file", "old")
local content = ("x"):rep(1 << 18)
for _, try in ipairs {
  function() fs.write(disk .. "/file", content) end,
  function() fs.copy("/proc/self/exe", disk .. "/file") end,
} do
  local _, err = pcall(try)
  print(err.name, fs.read(disk .. "/file"), #fs.list(disk, { hidden = true }))
end
local _, err = pcall(fs.write, disk .. "/log", content, { append = true })
print(err.name)
]])
fs.mkdir(dir .. "/disk")
local first = 0
while arg[first - 1] do first = first - 1 end
local result = flow.exec({ "unshare", "-rm", "sh", "-c",
  'mount -t tmpfs -o size=64k none "$1" || exit 77; exec "$2" "$3" "$1"', "sh",
  dir .. "/disk", arg[first], script }, { check = false }):await()
if result.status == 77 or result.stderr:find "^unshare" then return check.skip "no namespaces here" end
check.equal(result.stdout, "ENOSPC\told\t1\nENOSPC\told\t1\nENOSPC\n", result.stderr)
