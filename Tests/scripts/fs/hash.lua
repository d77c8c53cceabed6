-- Hashes of files and strings are those of the standard tools.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

check.equal(fs.hash { bytes = "" }, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
check.equal(fs.hash({ bytes = "abc" }, "sha256"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
check.equal(fs.hash({ bytes = "abc" }, "sha1"), "a9993e364706816aba3e25717850c26c9cd0d89d")
check.equal(fs.hash({ bytes = "abc" }, "md5"), "900150983cd24fb0d6963f7d28e17f72")
local dir = fs.temp_dir()
-- Sizes about those of blocks and buffers, and one that isn't hashed at once.
for _, size in ipairs { 0, 1, 63, 64, 32768, 32769, 131072, 131073, 3000001 } do
  local bytes = ("%08d"):rep(size // 8 + 1):sub(1, size)
  local path = dir .. "/" .. size
  fs.write(path, bytes)
  for _, name in ipairs { "sha256", "sha512", "sha1", "md5" } do
    local expected = flow.exec { name .. "sum", path }:await().stdout:match "^%x+"
    check.equal(fs.hash(path, name), expected, name .. " of a file")
    check.equal(fs.hash({ bytes = bytes }, name), expected, name .. " of bytes")
  end
end
check.equal(check.raises(function() fs.hash(dir) end, dir).name, "EISDIR")
