-- An error of the system has its number, name, path and the line of the script, in workers too.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

local dir = fs.temp_dir()
fs.write(dir .. "/file", "x")
fs.mkdir(dir .. "/folder")
local missing = dir .. "/missing"

local function fails(name, code, fn, ...)
  local err = check.raises(fn, dir, ...)
  check.equal(err.kind, "error")
  check.equal(err.name, name)
  check.equal(err.code, code)
  local line = debug.getinfo(fn, "S").linedefined
  check.contains(err.message, ("errors.lua:%d: can't "):format(line))
  return err
end
fails("ENOENT", 2, function() fs.read(missing) end, "read", "No such file or directory")
fails("ENOENT", 2, function() fs.list(missing) end, "list")
fails("ENOENT", 2, function() fs.hash(missing) end, "hash")
fails("ENOENT", 2, function() fs.rename(missing, dir .. "/x") end, "rename", "missing", "/x'")
fails("ENOENT", 2, function() fs.copy(missing, dir .. "/x") end, "copy", "missing")
fails("ENOENT", 2, function() fs.copy(dir .. "/file", missing .. "/x") end, "copy", "/file' to '", "missing/x")
fails("ENOENT", 2, function() fs.write(missing .. "/x", "") end, "write")
fails("ENOENT", 2, function() fs.write(missing .. "/x", "", { append = true }) end, "write")
if os.execute(("truncate -s 2T '%s/huge' 2>/dev/null"):format(dir)) then
  fails("EFBIG", 27, function() fs.read(dir .. "/huge") end, "read", "File too large")
end
fails("ENOTDIR", 20, function() fs.list(dir .. "/file") end, "list")
fails("ENOTDIR", 20, function() fs.read(dir .. "/file/x") end, "read")
fails("EISDIR", 21, function() fs.read(dir .. "/folder") end, "read")
fails("EISDIR", 21, function() fs.copy(dir .. "/folder", missing) end, "copy")
fails("EISDIR", 21, function() fs.copy(dir .. "/file", dir .. "/folder") end, "copy")
fails("EISDIR", 21, function() fs.write(dir .. "/folder", "") end, "write")
fails("ENAMETOOLONG", 36, function() fs.stat(dir .. ("/x"):rep(5000)) end, "stat")
check.equal(check.raises(function() fs.write("/dev/full", "x", { append = true }) end, "/dev/full").name, "ENOSPC")
check.raises(function() fs.write("/dev/full", "x") end, "not a regular file")
fs.write("/dev/null", "x", { append = true })

local op = flow.op("MissingOp", {
  thread = "worker", needs = { path = "string" },
  run = function(ctx) require "flow".fs.read(ctx:get "path") end,
})
local err = op:run({ path = missing }).error
check.equal(err.name, "ENOENT")
check.equal(err.code, 2)
check.contains(tostring(err), "[MissingOp]", "errors.lua:", missing)
