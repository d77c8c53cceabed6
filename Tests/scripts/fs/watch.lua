-- A watch reports each change once, of new folders too, with moves and without temporary files.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

-- The changes up to that of a file called `end`, as lines, with paths from the folder.
local function changes(watch, dir)
  local lines = {}
  while true do
    local change = watch()
    local function short(path) return path:sub(1, #dir + 1) == dir .. "/" and path:sub(#dir + 2) or path end
    if change.kind == "created" and short(change.path) == "end" then return lines end
    lines[#lines + 1] = ("%s %s%s%s"):format(change.kind, short(change.path),
      change.directory and "/" or "", change.from and " from " .. short(change.from) or "")
  end
end
local function finish(watch, dir)
  os.execute(("touch '%s/end'"):format(dir))
  local lines = changes(watch, dir)
  os.remove(dir .. "/end")
  return lines
end

local parent = fs.temp_dir()
local dir = parent .. "/watched"
fs.mkdir(dir .. "/old/below")
fs.write(dir .. "/old/file", "x")
local watch = fs.watch(dir, { recursive = true })
check.equal(tostring(watch), "watch: " .. dir)

fs.write(dir .. "/a", "1")
check.same(finish(watch, dir), { "created a" })
fs.write(dir .. "/a", "2")
fs.write(dir .. "/a", "3", { append = true })
fs.write(dir .. "/a", "4", { append = true })
-- Changes of one file that nobody has taken yet are one.
check.same(finish(watch, dir), { "removed end", "changed a" })

-- Everything in new folders, however soon it is there.
os.execute(([[cd '%s' && mkdir -p n/e/w && touch n/one n/e/two n/e/w/three && touch '%s/done']]):format(dir, parent))
fs.write(dir .. "/n/e/w/four", "")
local lines = finish(watch, dir)
table.sort(lines)
check.same({ table.unpack(lines, 1, 9) }, {
  "created n/", "created n/e/", "created n/e/two", "created n/e/w/", "created n/e/w/four", "created n/e/w/three",
  "created n/one", "removed end",
})

-- Moves within, in and out; the content of a folder that has moved is reported by its new path.
fs.rename(dir .. "/n/e", dir .. "/moved")
fs.write(dir .. "/moved/w/five", "")
fs.rename(dir .. "/moved/two", dir .. "/old/two")
fs.rename(dir .. "/old/two", dir .. "/old/file")
fs.rename(dir .. "/a", parent .. "/out")
fs.rename(parent .. "/out", dir .. "/in")
fs.rename(dir .. "/moved", parent .. "/tree")
fs.write(parent .. "/tree/unseen", "")
fs.rename(parent .. "/tree", dir .. "/back")
lines = finish(watch, dir)
check.same(lines, {
  "removed end", "moved moved/ from n/e", "created moved/w/five", "moved old/two from moved/two",
  "moved old/file from old/two", "removed a", "created in", "removed moved/", "created back/",
  "created back/unseen", "created back/w/", "created back/w/five", "created back/w/four", "created back/w/three",
})

fs.remove(dir .. "/back", { recursive = true })
lines = finish(watch, dir)
table.sort(lines)
check.equal(#lines, 7)
check.contains(table.concat(lines, "\n"), "removed back/\n", "removed back/w/five")
fs.mkdir(dir .. "/back/again")
check.same(finish(watch, dir), { "removed end", "created back/", "created back/again/" })
watch:close()

-- Without `recursive` only the folder itself.
watch = fs.watch(dir)
fs.write(dir .. "/old/file", "y")
fs.mkdir(dir .. "/other/deep")
fs.write(dir .. "/in", "z", { append = true })
check.same(finish(watch, dir), { "created other/", "changed in" })
watch:close()

-- A file, also when another one replaces it or it is gone for a while.
local file = dir .. "/in"
watch = fs.watch(file)
fs.write(file, "new")
fs.write(dir .. "/not this", "")
local change = watch()
check.same(change, { kind = "changed", path = file, directory = false })
fs.remove(file)
check.equal(watch().kind, "removed")
fs.write(dir .. "/temporary", "")
fs.rename(dir .. "/temporary", file)
check.equal(watch().kind, "created")
fs.rename(file, dir .. "/elsewhere")
check.equal(watch().kind, "removed")
watch:close()

-- Names are bytes.
watch = fs.watch(dir)
fs.write(dir .. "/\xFF\n", "")
check.equal(watch().path, dir .. "/\xFF\n")
watch:close()
