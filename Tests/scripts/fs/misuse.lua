-- Misuse of a function for files names the function and the argument; nothing is touched.
local check = require "check"
local fs = require "flow.fs"

local one = { "list", "stat", "exists", "mkdir", "remove", "read" }
for _, name in ipairs(one) do
  check.usage(function() fs[name]() end, name, "#1", "path expected, got no value")
  check.usage(function() fs[name](1) end, name, "#1", "path expected, got number")
  check.usage(function() fs[name]({}) end, name, "#1", "path expected, got table")
  check.usage(function() fs[name]("") end, name, "#1", "path expected, got an empty string")
  check.usage(function() fs[name]("a\0b") end, name, "#1", "NUL", "a\\0b")
end
for _, name in ipairs { "rename", "copy" } do
  check.usage(function() fs[name]("a") end, name, "#2", "path expected")
  check.usage(function() fs[name]("a", "") end, name, "#2", "an empty string")
  check.usage(function() fs[name]("a", "b\0") end, name, "#2", "NUL")
end
for _, name in ipairs { "list", "stat", "remove" } do
  check.usage(function() fs[name]("a", 1) end, name, "#2", "table expected, got number")
  check.usage(function() fs[name]("a", { nothing = 1 }) end, name, "#2", "unknown field 'nothing'")
end
check.usage(function() fs.list("a", { recursive = 1 }) end, "list", "#2", "'recursive'", "boolean")
check.usage(function() fs.list("a", { type = "folder" }) end, "list", "'type'", "'directory'", "got 'folder'")
check.usage(function() fs.list("a", { match = 1 }) end, "list", "'match'", "pattern or function")
for _, pattern in ipairs { "", "[a", "a\\", "[b-a]", "x/[", "[\\" } do
  check.usage(function() fs.list("a", { match = pattern }) end, "list", "#2", "'match'", "the pattern")
end
check.usage(function() fs.write("a") end, "write", "#2", "string")
check.usage(function() fs.write("a", 1) end, "write", "#2", "string expected, got number")
check.usage(function() fs.write("a", "b", { apend = true }) end, "write", "#3", "did you mean 'append'")
check.usage(function() fs.hash() end, "hash", "#1", "path or { bytes = string } expected, got no value")
check.usage(function() fs.hash {} end, "hash", "#1", "'bytes'", "string")
check.usage(function() fs.hash { bytes = 1 } end, "hash", "#1", "'bytes'", "string")
check.usage(function() fs.hash { byte = "" } end, "hash", "#1", "did you mean 'bytes'")
check.usage(function() fs.hash("a", "sha3") end, "hash", "#2", "'sha256'", "got 'sha3'")
check.usage(function() fs.hash("a", 1) end, "hash", "#2", "string")
check.equal(fs.exists "a", false)
