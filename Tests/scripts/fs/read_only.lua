-- Permissions are respected: what can't be written or read is an error, and stays.
local check, fs, host = require "check", require "flow.fs", require "host"

local dir = fs.temp_dir()
local script = dir .. "/script.lua"
fs.write(script, [[
local fs = require "flow.fs"
local disk = ...
for _, try in ipairs {
  function() fs.write(disk .. "/file", "new") end,
  function() fs.write(disk .. "/file", "new", { append = true }) end,
  function() fs.copy(disk .. "/file", disk .. "/copy") end,
  function() fs.rename(disk .. "/file", disk .. "/other") end,
  function() fs.remove(disk .. "/file") end,
  function() fs.remove(disk .. "/tree", { recursive = true }) end,
  function() fs.mkdir(disk .. "/a/b") end,
} do
  local _, err = pcall(try)
  io.write(err.name, " ")
end
fs.mkdir(disk .. "/tree")
print(#fs.list(disk, { recursive = true }))
]])
fs.mkdir(dir .. "/disk/tree/below")
fs.write(dir .. "/disk/file", "old")
local result = host.unshared("-rm", 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"', script, dir .. "/disk")
if result then check.equal(result.stdout, ("EROFS "):rep(7) .. "3\n", result.stderr) end
