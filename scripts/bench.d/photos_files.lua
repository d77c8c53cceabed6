-- Makes 4,000 files of 50,000 bytes in 40 folders: photos_files.lua DIR
local folder = arg[1]
for i = 0, 39 do
  assert(os.execute(("mkdir -p '%s/%02d'"):format(folder, i)))
  for k = 0, 99 do
    local file <close> = assert(io.open(("%s/%02d/%02d.jpg"):format(folder, i, k), "wb"))
    file:write((("%d,%d;"):format(i, k):rep(12500):sub(1, 50000)))
  end
end
