-- Names are bytes: those with a newline or without valid UTF-8 work as any other.
local check = require "check"
local fs = require "flow.fs"

local dir = fs.temp_dir()
local names = { "\n", "a\nb", "caf\xE9", "\xFF\xFE", ("x"):rep(255), "-rf", " ", "caf\u{E9}", "cafe\u{301}" }
for i, name in ipairs(names) do fs.write(dir .. "/" .. name, tostring(i)) end
check.equal(#fs.list(dir), #names)
for i, name in ipairs(names) do
  check.equal(fs.read(dir .. "/" .. name), tostring(i))
  check.equal(fs.stat(dir .. "/" .. name).size, 1)
end
check.equal(#fs.list(dir, { match = "caf?" }), 2)
check.equal(fs.list(dir, { match = "[\xFF]*" })[1], dir .. "/\xFF\xFE")
fs.rename(dir .. "/caf\xE9", dir .. "/\x80")
fs.copy(dir .. "/\x80", dir .. "/\x81")
check.equal(fs.read(dir .. "/\x81"), "3")
fs.mkdir(dir .. "/t\xF0/\xF1")
fs.remove(dir .. "/t\xF0", { recursive = true })
local err = check.raises(function() fs.read(dir .. "/no\xFF") end, "no\xFF'")
check.equal(err.name, "ENOENT")
