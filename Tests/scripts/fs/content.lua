-- Files are written, read, copied, renamed and removed byte for byte, each in one step.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

check.equal(fs, require "flow.fs")
local dir = fs.temp_dir()
local bytes = {}
for i = 0, 255 do bytes[#bytes + 1] = string.char(i) end
local content = table.concat(bytes):rep(20000)

fs.write(dir .. "/a", content)
check.equal(fs.read(dir .. "/a") == content, true, "the content")
fs.write(dir .. "/a", "short")
check.equal(fs.read(dir .. "/a"), "short")
fs.write(dir .. "/a", " and more", { append = true })
fs.write(dir .. "/new", "made", { append = true })
check.equal(fs.read(dir .. "/a"), "short and more")
check.equal(fs.read(dir .. "/new"), "made")
fs.write(dir .. "/empty", "")
check.equal(fs.read(dir .. "/empty"), "")
check.equal(#fs.read "/proc/self/status" > 0, true, "a file without a size")

-- A copy has the permissions, and replaces what was there; a link stays a link.
os.execute(("chmod 640 '%s/a'"):format(dir))
os.execute(("ln -s new '%s/link'"):format(dir))
fs.copy(dir .. "/a", dir .. "/link")
check.equal(fs.stat(dir .. "/link").type, "link")
check.equal(fs.read(dir .. "/new"), "short and more")
check.equal(fs.stat(dir .. "/new").mode, tonumber("640", 8))
fs.write(dir .. "/big", content)
fs.copy(dir .. "/big", dir .. "/copy")
check.equal(fs.read(dir .. "/copy") == content, true, "the copy")
fs.copy("/proc/self/status", dir .. "/status")
check.contains(fs.read(dir .. "/status"), "Pid:")
fs.copy(dir .. "/empty", dir .. "/empty2")
check.equal(fs.stat(dir .. "/empty2").size, 0)
fs.copy(dir .. "/copy", dir .. "/copy")
check.equal(fs.read(dir .. "/copy") == content, true, "a copy of itself")

fs.rename(dir .. "/copy", dir .. "/big")
check.equal(fs.exists(dir .. "/copy"), false)
fs.remove(dir .. "/big")
check.equal(fs.exists(dir .. "/big"), false)

-- Writing keeps the permissions, and leaves no other file.
fs.write(dir .. "/new", "again")
check.equal(fs.stat(dir .. "/new").mode, tonumber("640", 8))
local names = {}
for _, path in ipairs(fs.list(dir, { hidden = true })) do names[#names + 1] = path:sub(#dir + 2) end
check.equal(table.concat(names, " "), "a empty empty2 link new status")
