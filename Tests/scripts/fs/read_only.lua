-- Permissions are respected: what can't be written or read is an error, and stays.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

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
local first = 0
while arg[first - 1] do first = first - 1 end
local result = flow.exec({ "unshare", "-rm", "sh", "-c", [[
  mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 77
  exec "$2" "$3" "$1"]], "sh", dir .. "/disk", arg[first], script }, { check = false }):await()
if result.status == 77 or result.stderr:find "^unshare" then return check.skip "no namespaces here" end
check.equal(result.stdout, ("EROFS "):rep(7) .. "3\n", result.stderr)
