-- Folders are made with their parents, and trees removed without following links.
local check = require "check"
local fs = require "flow.fs"

local dir = fs.temp_dir()
fs.mkdir(dir .. "/a/b/c/")
fs.mkdir(dir .. "/a//b/./c")
check.equal(fs.stat(dir .. "/a/b/c").type, "directory")
fs.write(dir .. "/file", "")
check.equal(check.raises(function() fs.mkdir(dir .. "/file") end, "can't make folder").name, "EEXIST")
check.equal(check.raises(function() fs.mkdir(dir .. "/file/x") end).name, "ENOTDIR")

-- The target of a link stays, also with a slash after the link.
fs.mkdir(dir .. "/kept")
fs.write(dir .. "/kept/precious", "")
os.execute(([[cd '%s' && ln -s ../../kept a/b/link && ln -s kept top && ln -s ../a a/cycle && mkfifo a/pipe &&
  chmod 500 a/b]]):format(dir))
local full = check.raises(function() fs.remove(dir .. "/a") end, dir .. "/a", "recursive")
check.equal(full.name, "ENOTEMPTY")
fs.remove(dir .. "/a", { recursive = true })
check.equal(fs.exists(dir .. "/a"), false)
fs.remove(dir .. "/top/", { recursive = true })
check.equal(fs.stat(dir .. "/top"), nil)
check.equal(fs.exists(dir .. "/kept/precious"), true)

for _, path in ipairs { ".", "..", "/", dir .. "/kept/.", dir .. "/kept/..", "//" } do
  check.equal(check.raises(function() fs.remove(path, { recursive = true }) end).name, "EINVAL")
end
check.equal(fs.exists(dir .. "/kept/precious"), true)
fs.remove(dir .. "/file", { recursive = true })
check.equal(check.raises(function() fs.remove(dir .. "/file") end).name, "ENOENT")
fs.mkdir(dir .. "/empty")
fs.remove(dir .. "/empty")
check.equal(#fs.list(dir), 1)
