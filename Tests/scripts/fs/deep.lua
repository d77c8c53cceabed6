-- A tree of 10,000 levels, whose paths are longer than the system allows, is listed and removed.
local check = require "check"
local fs = require "flow.fs"
local scratch = require "scratch"

local dir <const>, guard <close> = scratch.folder()
-- A tree goes to the bottom of a new chain of folders, again and again.
local chain = ("/d"):rep(500)
fs.mkdir(dir .. "/tree")
fs.write(dir .. "/tree/file", "")
for _ = 1, 20 do
  fs.mkdir(dir .. "/new" .. chain)
  fs.rename(dir .. "/tree", dir .. "/new" .. chain .. "/tree")
  fs.rename(dir .. "/new", dir .. "/tree")
end
local files = fs.list(dir, { recursive = true, type = "file" })
check.equal(#files, 1)
check.equal(select(2, files[1]:gsub("/d%f[/]", "")), 20 * 500)
check.equal(#fs.list(dir .. "/tree", { recursive = true, match = "**/file" }), 1)
fs.remove(dir .. "/tree", { recursive = true })
check.equal(#fs.list(dir), 0)
