-- Writes the blocks of pages that are files into a folder: `<!-- file: Package.swift -->`.
--
--   lua5.4 write_package.lua FOLDER PAGE...
package.path = arg[0]:match "^(.*)/" .. "/../docs.d/?.lua;" .. package.path
local page = require "page"

local folder = arg[1]
local count = 0
for i = 2, #arg do
  for _, block in ipairs(page.read(arg[i]).blocks) do
    local name = block.marker.file
    if name then
      local path = folder .. "/" .. name
      assert(os.execute(("mkdir -p '%s'"):format(path:match "^(.*)/")))
      local file <close> = assert(io.open(path, "w"))
      file:write(block.text)
      count = count + 1
    end
  end
end
assert(count > 0, "no page has a block with a file")
