-- A watch reports each change once, of new folders too, with moves and without temporary files.
local check, host = require "check", require "host"
local flow = require "flow"
local fs = flow.fs

-- The changes up to one of a file called `end`, as lines, with paths from the folder.
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

-- A new folder that has another name before it was read, and one in it.
os.execute(([[cd '%s' && mkdir -p first/x && touch first/x/1 && mv first second && touch '%s/done']]):format(dir, parent))
lines = finish(watch, dir)
table.sort(lines)
check.same(lines, {
  "created first/", "created second/x/", "created second/x/1", "moved second/ from first", "removed end" })
fs.write(dir .. "/second/x/2", "")
check.same(finish(watch, dir), { "removed end", "created second/x/2" })
fs.rename(dir .. "/second", dir .. "/third")
fs.write(dir .. "/third/x/3", "")
check.same(finish(watch, dir), { "removed end", "moved third/ from second", "created third/x/3" })
fs.remove(dir .. "/third", { recursive = true })
lines = finish(watch, dir)
check.equal(#lines, 6)

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

-- Paths are spelt as they were given: a file's, and a folder's with the name after it.
os.execute(("ln -s '%s' '%s/link'"):format(dir, parent))
local relative = ("../"):rep(40) .. dir:sub(2)
for _, folder in ipairs {
  dir .. "/", dir .. "//", dir .. "/./", dir .. "/../watched/", parent .. "/link/", "/" .. dir .. "/", relative .. "/",
} do
  fs.write(dir .. "/spelt", "")
  watch = fs.watch(folder .. "spelt")
  check.equal(tostring(watch), "watch: " .. folder .. "spelt")
  fs.write(dir .. "/spelt", "again")
  check.equal(watch().path, folder .. "spelt")
  fs.remove(dir .. "/spelt")
  check.equal(watch().path, folder .. "spelt")
  watch:close()
  watch = fs.watch(folder)
  fs.write(dir .. "/spelt", "")
  check.equal(watch().path, folder .. "spelt")
  watch:close()
end
-- In the working directory.
local here = flow.exec({ "sh", "-c", [[p=$(realpath "$1") && cd "$2" && exec "$p" -e "$3"]], "sh", host.binary, parent, [[
  local fs = require "flow.fs"
  for _, path in ipairs { "f", "./f", ".//f" } do
    fs.write("f", "")
    local watch = fs.watch(path)
    fs.write("f", "again")
    print(watch().path)
    fs.remove "f"
    print(watch().path)
  end
  for _, path in ipairs { ".", "./" } do
    local watch = fs.watch(path)
    fs.write("f", "")
    print(watch().path)
    fs.remove "f"
  end
]] }):await()
check.equal(here.stdout, "f\nf\n./f\n./f\n.//f\n.//f\n./f\n./f\n")

-- A change that has come for a task which was cancelled before it continued is for the next one.
watch = fs.watch(dir)
local second
local reader = flow.spawn(function()
  local change = watch()
  second:cancel()
  return change
end)
second = flow.spawn(function() return watch() end)
flow.sleep(0)
os.execute(("mkdir '%s/1' '%s/2' '%s/3'"):format(dir, dir, dir))
check.equal(reader:await().path, dir .. "/1")
second:wait()
check.equal(second.state, "cancelled")
check.equal(watch().path, dir .. "/2")
check.equal(watch().path, dir .. "/3")
watch:close()

-- Changes that wait for a reader are kept in order, however many they are.
watch = fs.watch(dir)
os.execute(("cd '%s' && mkdir $(seq 10001 15000)"):format(dir))
for number = 10001, 15000 do check.equal(watch().path, dir .. "/" .. number) end
watch:close()

-- Names are bytes.
watch = fs.watch(dir)
fs.write(dir .. "/\xFF\n", "")
check.equal(watch().path, dir .. "/\xFF\n")
watch:close()
