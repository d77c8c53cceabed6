-- A file that is replaced keeps its owner, attributes and links; mounts and files in closed folders are overwritten; holes stay.
local fs, flow, check, json = require "flow.fs", require "flow", require "check", require "flow.json"
local dir = fs.temp_dir()
local function sh(text, ...)
  return flow.exec({ "sh", "-c", text, "sh", dir, ... }, { timeout = 60 }):await().stdout
end
-- The ways to write a whole file.
fs.write(dir .. "/source", "new")
local ways = {
  write = function(path) fs.write(path, "new") end,
  copy = function(path) fs.copy(dir .. "/source", path) end,
  ["json.write"] = function(path) json.write(path, "new") end,
  output = function(path) flow.exec({ "printf", "new" }, { output = path }):await() end,
}
local function written(path) return (fs.read(path):gsub('["\n]', "")) end

-- A link whose target isn't there: the target is made, through further links and relative ones.
for name, write in pairs(ways) do
  sh [[cd "$1" && rm -rf links && mkdir -p links/deep && ln -s deep/second links/first && ln -s ../target links/deep/second]]
  write(dir .. "/links/first")
  check.equal(written(dir .. "/links/target"), "new", name)
  check.equal(sh [[readlink "$1/links/first" "$1/links/deep/second"]], "deep/second\n../target\n", name)
end
check.raises(function() fs.write(dir .. "/links/none/file", "x") end, "No such file or directory")
sh [[ln -s nowhere/target "$1/links/broken"; ln -s loop "$1/links/loop"]]
check.raises(function() fs.write(dir .. "/links/broken", "x") end, "No such file or directory")
check.raises(function() fs.write(dir .. "/links/loop", "x") end, "Too many levels of symbolic links")

-- Attributes, which /tmp may not have.
local SET = [[import os, sys
try: os.setxattr(sys.argv[1], "user.flowlua", b"kept")
except OSError as e: print(e.strerror)]]
local GET = [[import os, sys
print(os.getxattr(sys.argv[1], "user.flowlua").decode(), oct(os.stat(sys.argv[1]).st_mode & 0o7777))]]
local function python(code, path) return flow.exec({ "python3", "-c", code, path }):await().stdout end
for _, name in ipairs { "write", "copy", "json.write", "output" } do
  local path = dir .. "/attributes"
  fs.write(path, "old")
  sh [[chmod 640 "$1/attributes"]]
  local missing = python(SET, path)
  if missing == "" then
    ways[name](path)
    -- A copy has the permissions of its source.
    check.equal(python(GET, path), name == "copy" and "kept 0o644\n" or "kept 0o640\n", name)
  else
    check.skip("no extended attributes here: " .. missing)
  end
end

-- Holes, at the start, in the middle and at the end.
for _, layout in ipairs { "", "4096:data", "100M:data 200M:more", "0:data", "1M:data" } do
  sh([[cd "$1" && rm -f sparse copy && truncate -s 300M sparse && for part in $2; do
    printf %s "${part#*:}" | dd of=sparse bs=1 oflag=seek_bytes seek="${part%:*}" conv=notrunc status=none; done]], layout)
  fs.copy(dir .. "/sparse", dir .. "/copy")
  check.equal(sh [[cd "$1" && cmp sparse copy && stat -c %s copy]], "314572800\n", layout)
  local taken = tonumber(sh [[du -k "$1/copy" | cut -f 1]])
  assert(taken < 2000, ("%s: %d kB"):format(layout, taken))
end

if not sh("id -u"):find "^0\n" then return check.skip "only root may give files to others, and mount" end
-- The owner.
for name, write in pairs(ways) do
  sh [[cd "$1" && echo old >owned && chmod 640 owned && chown 1234:2345 owned]]
  write(dir .. "/owned")
  check.equal(sh [[stat -c '%u:%g' "$1/owned"]], "1234:2345\n", name)
  if name ~= "copy" then check.equal(sh [[stat -c %a "$1/owned"]], "640\n", name) end
end

-- A file that is a mount, and one in a folder that can't be written, in a namespace of mounts.
local script = dir .. "/ways.lua"
fs.write(script, [[
  local fs, flow, json = require "flow.fs", require "flow", require "flow.json"
  local path, source = ...
  local function content() return (fs.read(path):gsub('["\n]', "")) end
  fs.write(path, "written") print(content())
  fs.copy(source, path) print(content())
  json.write(path, "as json") print(content())
  flow.exec({ "printf", "output" }, { output = path }):await() print(content())
  fs.write(path, ("long"):rep(1000)) fs.write(path, "short") print(content())
]])
local wanted = "written\nnew\nas json\noutput\nshort\n"
local binary = require("host").binary
local mounted = flow.exec({ "unshare", "--mount", "sh", "-c", [[
  cd "$1" && echo old >host && : >conf && mount --bind host conf && "$2" "$3" conf source && cat host && ls -a | grep -c tmp]],
  "sh", dir, binary, script }, { check = false, timeout = 60 }):await()
local holes = flow.exec({ "unshare", "--mount", "sh", "-c", [[
  cd "$1" && truncate -s 20M hollow && printf x >>hollow && : >held && mount --bind held held &&
  "$2" -e 'require "flow.fs".copy("hollow", "held")' && cmp hollow held && du -k held | cut -f 1]], "sh", dir, binary },
  { check = false, timeout = 60 }):await()
if mounted.stderr:find "ermitted" or mounted.stderr:find "denied" then
  check.skip("no mounts here: " .. mounted.stderr)
else
  check.equal(mounted.stderr, "")
  check.equal(mounted.stdout, wanted .. "short0\n")
  check.equal(holes.stderr, "")
  assert(tonumber(holes.stdout) < 2000, holes.stdout)
end
local read_only = flow.exec({ "unshare", "--mount", "sh", "-c", [[
  cd "$1" && mkdir ro && mount -t tmpfs none ro && : >ro/conf && echo old >host && mount --bind host ro/conf
  mount -o remount,ro,bind ro && "$2" "$3" ro/conf source && cat host]], "sh", dir, binary, script },
  { check = false, timeout = 60 }):await()
if mounted.stderr == "" then
  check.equal(read_only.stderr, "")
  check.equal(read_only.stdout, wanted .. "short")
end

-- A file that everybody may write, in a folder as /tmp where only its owner may replace it.
local sticky = flow.exec({ "sh", "-c", [[
  cp "$2" "$1/binary" && chmod 755 "$1" "$1/binary" && chmod 644 "$3" && cd "$1" && mkdir shared && echo old >shared/file &&
  chmod 666 shared/file && chmod 1777 shared && cd shared &&
  as_other="setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/" &&
  $as_other ../binary "$3" file ../source && stat -c ' %u %a' file && ls -A]],
  "sh", dir, binary, script }, { check = false, timeout = 60 }):await()
check.equal(sticky.stderr, "")
check.equal(sticky.stdout, wanted .. " 0 666\nfile\n")

-- A copy of a file that is only for reading keeps the attributes of the one that it replaces.
local theirs = dir .. "/theirs/file"
sh [[cd "$1" && mkdir theirs && echo old >theirs/file && echo new >theirs/source && chmod 444 theirs/source]]
if python(SET, theirs) == "" then
  sh([[cd "$1/theirs" && chown -R 65534 . && exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/ ../binary \
    -e 'require "flow.fs".copy("source", "file")']])
  check.equal(python(GET, theirs), "kept 0o444\n")
end
