-- A file that doesn't fit on the disk leaves the old one unchanged, and nothing beside it.
local check, fs, host = require "check", require "flow.fs", require "host"

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
local result = host.unshared("-rm", 'mount -t tmpfs -o size=64k none "$1"', script, dir .. "/disk")
if result then check.equal(result.stdout, "ENOSPC\told\t1\nENOSPC\told\t1\nENOSPC\n", result.stderr) end
