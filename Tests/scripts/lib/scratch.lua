-- Folders for very many files.
local fs = require "flow.fs"

local scratch = {}

-- A new folder, in memory where that is possible, because a disk takes long for many files; and a value
-- whose __close removes it.
function scratch.folder()
  local folder = fs.temp_dir()
  if fs.exists "/dev/shm" then
    folder = "/dev/shm" .. folder:match "/[^/]+$"
    fs.mkdir(folder)
  end
  return folder, setmetatable({}, {
    __close = function() fs.remove(folder, { recursive = true }) end,
  })
end

return scratch
