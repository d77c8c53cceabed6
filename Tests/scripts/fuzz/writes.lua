-- Random writes beside links, holes, mounts and files of others leave links, owners, permissions and attributes, and no half file.
-- clock: real: the files are made and looked at by other programs
--
--   writes.lua [COUNT [SEED]]     that many writes, 150 by default, from a seed on
--
-- As root the half of them is done by another user, and some files are mounts of their own.
local flow, check, host = require "flow", require "check", require "host"
local json, fs = flow.json, flow.fs

local count = math.tointeger(arg[1] or 150)
local seed = math.tointeger(arg[2] or os.time())
math.randomseed(seed)
local random = math.random
local function any(list) return list[random(#list)] end

local dir = fs.temp_dir()
local is_root = flow.exec { "id", "-u" }:await().stdout == "0\n"
local own = tonumber(flow.exec { "id", "-u" }:await().stdout)
local OTHER = 65534

-- Makes what each case says, or says what is there afterwards: {"uid": …} of each file, by its path.
fs.write(dir .. "/files.py", [[
import hashlib, json, os, stat, subprocess, sys
task, plan = sys.argv[1], json.load(open(sys.argv[2]))

def look(path):
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return {"link": os.readlink(path)}
    if stat.S_ISDIR(status.st_mode):
        return {"folder": True}
    try:
        attribute = os.getxattr(path, "user.flowlua").decode()
    except OSError:
        attribute = ""
    digest = hashlib.md5(open(path, "rb").read()).hexdigest()
    return {"uid": status.st_uid, "gid": status.st_gid, "mode": status.st_mode & 0o7777, "size": status.st_size,
            "kept": status.st_blocks * 512, "attribute": attribute, "digest": digest}

def make(case, name):
    file = case[name]
    if not file:
        return
    path = case["folder"] + "/" + file["path"]
    with open(path, "wb") as opened:
        for at, text in file["parts"]:
            opened.seek(at)
            opened.write(text.encode())
        opened.truncate(file["size"])
    if os.getuid() == 0:
        os.chown(path, file["uid"], file["gid"])
    os.chmod(path, file["mode"])
    if file["attribute"]:
        try:
            os.setxattr(path, "user.flowlua", file["attribute"].encode())
        except OSError:
            pass

states = []
for case in plan:
    folder = case["folder"]
    if task == "make":
        for name in (".", "deep", "links", "from"):
            os.makedirs(folder + "/" + name)
        for name, target in case["links"]:
            os.symlink(target.replace("FOLDER", folder), folder + "/links/" + name)
        make(case, "source")
        make(case, "target")
        if case["mount"]:
            made = subprocess.run(["mount", "--bind", path := folder + "/" + case["target"]["path"], path])
            if made.returncode != 0:
                sys.exit("mount refused")
        for name in (".", "deep"):
            if os.getuid() == 0:
                os.chown(folder + "/" + name, *case["folder_owner"])
            os.chmod(folder + "/" + name, case["folder_mode"])
    found = {}
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(root, name)
            found[os.path.relpath(path, folder)] = look(path)
    states.append(found)
print(json.dumps(states))
]])

-- Does what the cases say, those of one user, and prints the errors.
fs.write(dir .. "/write.lua", [[
local flow = require "flow"
local plan, actor = flow.json.read(arg[1]), tonumber(arg[2])
local ways = {
  write = function(case) flow.fs.write(case.path, case.text) end,
  append = function(case) flow.fs.write(case.path, case.text, { append = true }) end,
  copy = function(case) flow.fs.copy(case.folder .. "/from/source", case.path) end,
  ["json.write"] = function(case) flow.json.write(case.path, case.text) end,
  output = function(case) flow.exec({ "printf", "%s", case.text }, { output = case.path }):await() end,
}
local said = {}
for number, case in ipairs(plan) do
  local ok, problem = true, ""
  if case.actor == actor then ok, problem = pcall(ways[case.way], case) end
  said[number] = ok and "" or tostring(problem)
end
print(flow.json.encode(flow.json.array(said)))
]])

local function content(size)
  local parts = {}
  for i = 1, random(0, 3) do parts[i] = json.array { random(0, size), ("%d."):format(random(99)):rep(random(2000)) } end
  return json.array(parts), size
end

local function made(number, batch)
  local actor = is_root and any { 0, OTHER } or own
  local folder = ("%s/%d-%d"):format(dir, batch, number)
  local case = {
    folder = folder, actor = actor, way = any { "write", "append", "copy", "json.write", "output" }, text = "text" .. number,
    folder_mode = any { 511, 493, 493, 365, 1023 }, folder_owner = json.array(any { { 0, 0 }, { actor, actor } }),
    target = false, mount = false, links = json.array {},
  }
  local file = any { "file", "deep/file" }
  if random(4) > 1 then
    local uid, gid = any { actor, actor, 1234, 0 }, any { actor, 2345 }
    if not is_root then uid, gid = own, own end
    local parts, size = content(any { 0, 10, 1000, 4 << 20 })
    case.target = { path = file, uid = uid, gid = gid, mode = any { 420, 384, 292, 438, 438, 416 }, parts = parts, size = size,
      attribute = any { "", "kept" } }
    case.mount = is_root and random(5) == 1
  end
  local parts, size = content(any { 0, 1000, 8 << 20 })
  case.source = { path = "from/source", uid = actor, gid = actor, mode = any { 420, 384, 292 }, parts = parts, size = size,
    attribute = "" }
  local links = {
    {}, {}, { { "a", "../" .. file } }, { { "a", "FOLDER/" .. file } }, { { "a", "b" }, { "b", "../links/c" }, { "c", "../" .. file } },
    { { "to", ".." } }, { { "a", "to/" .. file }, { "to", "FOLDER" } }, { { "a", "b" }, { "b", "a" } }, { { "a", "../none/file" } },
  }
  local way = random(#links)
  case.links = json.array {}
  for i, link in ipairs(links[way]) do case.links[i] = json.array(link) end
  case.path = ("%s/%s"):format(folder, way <= 2 and file or way == 6 and "links/to/" .. file or "links/a")
  case.fails = way > 7
  return case, file
end

-- Whether the system lets the user write there; nil where that depends on how the system is set up.
local function permitted(case)
  if case.fails then return false end
  local actor, target = case.actor, case.target
  local function can(owner, group, mode)
    if actor == 0 then return true end
    if owner == actor then return mode & 128 ~= 0 end
    return mode & (group == actor and 16 or 2) ~= 0
  end
  if not target then return can(case.folder_owner[1], case.folder_owner[2], case.folder_mode) end
  -- fs.protected_regular: in folders as /tmp.
  if case.folder_mode & 512 ~= 0 and (case.way == "append" or case.way == "output") and target.uid ~= actor then return end
  return can(target.uid, target.gid, target.mode)
end

local RUN = [[
  set -e
  python() { /usr/bin/python3 "$1/files.py" "$2" "$3"; }
  python "$1" make "$2" >"$1/before"
  export TMPDIR=$1/tmp
  "$3" "$1/write.lua" "$2" $4 >"$1/said.$4"
  if [ $4 = 0 ]; then setpriv --reuid $5 --regid $5 --clear-groups env HOME=/ "$1/flowlua" "$1/write.lua" "$2" $5 >"$1/said.$5"; fi
  python "$1" look "$2" >"$1/after"]]
local function run(plan)
  local path = dir .. "/plan.json"
  json.write(path, json.array(plan))
  local words = { "sh", "-c", RUN, "sh", dir, path, host.binary, own, OTHER }
  local mounts = false
  for _, case in ipairs(plan) do mounts = mounts or case.mount end
  if mounts then table.move({ "unshare", "--mount" }, 1, 2, 1, table.move(words, 1, #words, 3)) end
  return flow.exec(words, { check = false, stdin = "" }):await()
end

flow.exec({ "sh", "-c", [[chmod 755 "$1" && mkdir -m 1777 "$1/tmp" && chmod 644 "$1"/*.lua &&
  if [ "$3" = 0 ]; then cp "$2" "$1/flowlua" && chmod 755 "$1/flowlua"; fi]], "sh", dir, host.binary, own }):await()
if not is_root then check.skip "only root may give files to others, and mount"
elseif flow.exec({ "unshare", "--mount", "mount", "--bind", dir, dir }, { check = false }):await().status ~= 0 then
  check.skip "no mounts here"
  is_root = false
end

local failures = 0
for batch = 1, (count + 99) // 100 do
  local plan, files = {}, {}
  for number = 1, math.min(100, count - (batch - 1) * 100) do plan[number], files[number] = made(number, batch) end
  local result = run(plan)
  if result.status ~= 0 then error(("seed %d, batch %d: %s"):format(seed, batch, result.stderr), 0) end
  local before, after = json.read(dir .. "/before"), json.read(dir .. "/after")
  local said = {}
  for number, case in ipairs(plan) do
    said[case.actor] = said[case.actor] or json.read(dir .. "/said." .. case.actor)
    local problem = said[case.actor][number]
    local old, new = before[number], after[number]
    local wrong = {}
    local function expect(condition, text, ...) if not condition then wrong[#wrong + 1] = text:format(...) end end
    -- Files other than the target are as they were.
    for name, state in pairs(old) do
      if name ~= files[number] then
        for field, value in pairs(state) do
          expect(new[name] and new[name][field] == value, "%s of %s was %s", field, name, value)
        end
      end
    end
    for name in pairs(new) do expect(old[name] or name == files[number], "%s is left", name) end
    local allowed = permitted(case)
    expect(allowed == nil or allowed == (problem == ""), "%s", problem == "" and "it isn't permitted" or problem)
    local was, is = old[files[number]], new[files[number]]
    if problem ~= "" then
      expect(not was == not is, "it is made, or lost")
      for field, value in pairs(was or {}) do expect(is and is[field] == value, "%s was %s in spite of its error", field, value) end
    elseif is then
      local source = old["from/source"]
      local bytes = #case.text + (case.way == "json.write" and 2 or 0) + (case.way == "append" and was and was.size or 0)
      expect(is.size == (case.way == "copy" and source.size or bytes) or case.way == "json.write" and is.size == bytes + 1,
        "it has %d bytes", is.size)
      if case.way == "copy" then
        expect(is.digest == source.digest, "the content differs")
        expect(is.kept <= source.kept + 65536, "its holes are filled: %d bytes, the source has %d", is.kept, source.kept)
      end
      if was then
        expect(is.attribute == was.attribute, "the attribute was %q, is %q", was.attribute, is.attribute)
        -- Another user may neither keep the owner nor the group of a file that it replaces.
        if case.actor == 0 or was.uid == case.actor then
          expect(is.uid == was.uid, "the owner was %d, is %d", was.uid, is.uid)
          expect(is.gid == was.gid or case.actor ~= 0 and was.gid ~= case.actor, "the group was %d, is %d", was.gid, is.gid)
        end
        expect(is.mode == was.mode or case.way == "copy" and is.mode == source.mode, "the mode was %o, is %o", was.mode, is.mode)
      else
        expect(is.uid == case.actor, "the owner is %d", is.uid)
        expect(is.mode == (case.way == "copy" and source.mode or 420), "the mode is %o", is.mode)
      end
    else
      expect(false, "nothing is there")
    end
    if #wrong > 0 then
      failures = failures + 1
      -- The contents are long, and a seed draws them again.
      case.source.parts = #case.source.parts
      if case.target then case.target.parts = #case.target.parts end
      print(("seed %d, batch %d, number %d: %s\n%s"):format(seed, batch, number, table.concat(wrong, "; "),
        json.encode(case, { sort = true })))
    end
  end
  local left = fs.list(dir .. "/tmp", { hidden = true })
  if #left > 0 then error(("seed %d, batch %d: %s is left"):format(seed, batch, left[1]), 0) end
end
if failures > 0 then error(("%d of %d writes went wrong, seed %d"):format(failures, count, seed), 0) end
