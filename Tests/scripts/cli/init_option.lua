-- `--init` writes a flow, its test and settings for editors into a folder, and keeps files that exist.
local host, check = require "host", require "check"
local fs, json = require "flow.fs", require "flow.json"

local function sh(command)
  return host.run("sh", { "-c", command })
end

local function quoted(text) return "'" .. text:gsub("'", [['\'']]) .. "'" end

local function real(path) return sh("realpath " .. quoted(path)).stdout:sub(1, -2) end

local folder, binary = real(fs.temp_dir()), real(host.binary)

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function init(arguments, status, binary)
  local result = host.run(binary or host.binary, { "--init", table.unpack(arguments) })
  check.equal(result.status, status or 0, result.stderr)
  if result.status == 0 then check.equal(result.stderr, "") end
  return result
end

local function library_of(place)
  local settings = json.decode(read(place .. "/.luarc.json"))
  check.equal(settings["runtime.version"], "Lua 5.4")
  check.equal(#settings["workspace.library"], 1)
  return settings["workspace.library"][1]
end

-- The entries of a folder, with times and contents.
local function state(place)
  return sh(("cd %s && find . -printf '%%p %%m %%T@\\n' | sort && find . -type f | sort | xargs -d '\\n' cksum")
    :format(quoted(place))).stdout
end

-- A new folder, with a name that neither JSON nor a shell takes as it is.
local place = folder .. [[/new/a 'b" c\]]
local output = init({ place }).stdout
check.equal(output, ([[
wrote %s/.flowlua/library (the annotations)
wrote %s/.luarc.json
wrote %s/.gitignore
wrote %s/hello.lua
wrote %s/hello_test.lua

Run the flow, and its tests:
  %s --summary %s
  %s --test %s
]]):format(place, place, place, place, place, host.binary, quoted(place .. "/hello.lua"), host.binary,
  quoted(place)))
local library = library_of(place)
check.equal(library, place .. "/.flowlua/library")
for _, name in ipairs { "flow", "flow.csv", "flow.fs", "flow.http", "flow.json", "flow.testing" } do
  check.equal(read(("%s/%s.d.lua"):format(library, name)):match "^%-%-%-@meta ([^\n]+)", name)
end
check.equal(read(place .. "/.gitignore"), ".flowlua/\n.flowlua-*.tmp\n.luarc.json\n")

-- The commands that it prints work, from here.
local run, test = output:match "\n  ([^\n]+)\n  ([^\n]+)\n$"
local result = sh(run)
check.equal(result.status, 0)
check.equal(result.stdout, "Dear Ada, please come!\nDear Grace, please come!\nDear Lin, please come!\n")
check.contains(result.stderr, "[InviteOp #2 Grace] Retry 2/3 in 0.5s: no paper", "[CountOp] 3 letters are written",
  "Flow isSuccess: true")
result = sh(test)
check.equal(result.status, 0, result.stdout)
check.equal(result.stderr, "")
check.contains(result.stdout, "hello_test.lua: all_guests_are_invited\n", "hello_test.lua: a_letter_is_tried_three_times\n",
  "# 2 passed, 0 failed, in 1 file\n")
-- And a flow that does something else fails its test.
local original = read(place .. "/hello.lua")
write(place .. "/hello.lua", (original:gsub("please come", "stay away")))
result = sh(test)
check.equal(result.status, 1)
check.contains(result.stdout, "hello_test.lua:12: expected \"Dear Grace, please come!\", got \"Dear Grace, stay away!\"")
write(place .. "/hello.lua", original)

-- The store of kept runs, which comes into the same folder, is for this user only.
check.equal(sh("stat -c %a " .. quoted(place .. "/.flowlua")).stdout, "700\n")
check.equal(host.run(host.binary, { "--keep", place .. "/hello.lua" }).status, 0)
result = host.run(host.binary, { "--verify", place .. "/hello.lua" })
check.equal(result.status, 0, result.stdout .. result.stderr)

-- Git sees what belongs to the project, and nothing else.
if sh("command -v git").status == 0 then
  local git = "cd " .. quoted(place) .. " && git init --quiet . && git status --porcelain --untracked-files=all && rm -rf .git"
  check.equal(sh(git).stdout, "?? .gitignore\n?? hello.lua\n?? hello_test.lua\n")
else
  check.skip "no git, which shows what .gitignore leaves"
end

-- Once more: nothing changes.
local before = state(place)
output = init({ place }).stdout
check.equal(state(place), before)
check.equal(select(2, output:gsub("kept [^\n]+ %(it exists%)\n", "")), 4)
check.lacks(output, "wrote", "added", "left out", "needs")
-- Annotations of another version are renewed, and nothing else is.
write(library .. "/flow.csv.d.lua", "---@meta flow.csv\n")
output = init({ place }).stdout
check.contains(output, "library (the annotations)\n")
assert(#read(library .. "/flow.csv.d.lua") > 100)
check.equal(read(place .. "/hello.lua"), original)

-- The present folder: names as the user would write them.
local present = folder .. "/present"
fs.mkdir(present)
result = sh(("cd %s && %s --init"):format(present, binary))
check.equal(result.status, 0)
check.contains(result.stdout, "wrote .flowlua/library (", "wrote hello.lua\n",
  ("\n  %s --summary hello.lua\n  %s --test\n"):format(binary, binary))
check.equal(library_of(present), present .. "/.flowlua/library")

-- Files of the user stay as they are; what they lack is said, or added.
local own = folder .. "/own/"
fs.mkdir(own)
write(own .. "hello.lua", "print 'mine'")
write(own .. ".gitignore", "/.flowlua\r\nbuild/")
write(own .. ".luarc.json", "{}")
output = init({ own }).stdout
check.contains(output, "kept " .. own .. "hello.lua (it exists)\nleft out " .. own .. "hello_test.lua: " .. own
  .. "hello.lua is another script\n", "kept " .. own .. ".luarc.json (it exists)\n  to complete 'flow'",
  own .. ".flowlua/library\"\n", "added '.flowlua-*.tmp' to " .. own .. ".gitignore\n", "\nRun it:\n")
check.equal(read(own .. "hello.lua"), "print 'mine'")
check.equal(read(own .. ".luarc.json"), "{}")
check.equal(read(own .. ".gitignore"), "/.flowlua\r\nbuild/\n.flowlua-*.tmp\n")
assert(not fs.exists(own .. "hello_test.lua"))
before = state(own)
init { own }
check.equal(state(own), before)
-- A link is a file that exists, also one that leads nowhere.
local linked = folder .. "/linked"
fs.mkdir(linked)
sh(("ln -s %s/elsewhere.lua %s/hello.lua"):format(linked, linked))
check.contains(init({ linked }, 1).stderr, "--init: can't read '" .. linked .. "/hello.lua': No such file or directory")
assert(not fs.exists(linked .. "/elsewhere.lua"))

-- Installed annotations of this version are used where they are; of another one, they aren't.
local prefix = folder .. "/prefix"
fs.mkdir(prefix .. "/bin")
fs.mkdir(prefix .. "/share/flowlua/library")
local installed = prefix .. "/bin/flowlua"
check.equal(sh(("cp %s %s && ln -s %s %s/link"):format(quoted(binary), installed, installed, folder)).status, 0)
check.equal(host.run(installed, { "--annotations", prefix .. "/share/flowlua/library" }).status, 0)
for name, program in pairs { direct = installed, linked = folder .. "/link" } do
  local project = folder .. "/installed_" .. name
  check.lacks(init({ project }, 0, program).stdout, "annotations")
  check.equal(library_of(project), prefix .. "/share/flowlua/library")
  assert(not fs.exists(project .. "/.flowlua"))
end
write(prefix .. "/share/flowlua/library/flow.d.lua", "---@meta flow\n")
init({ folder .. "/older" }, 0, installed)
check.match(library_of(folder .. "/older"), "/older/%.flowlua/library$")

-- Folders and files that can't be written.
write(folder .. "/file", "")
check.contains(init({ folder .. "/file" }, 1).stderr, "--init: can't make folder '" .. folder .. "/file': File exists")
check.contains(init({ folder .. "/file/below" }, 1).stderr, "/file/below': Not a directory")
check.contains(init({ "/proc" }, 1).stderr, "--init: can't make folder '/proc/.flowlua/library'")
fs.mkdir(folder .. "/ignored/.gitignore")
check.contains(init({ folder .. "/ignored" }, 1).stderr, "--init: can't read '" .. folder .. "/ignored/.gitignore'")

-- It is alone on the command line.
for _, case in ipairs {
  { { "--init", "a", "b" }, "takes one folder and executes no script: 'b' is too much" },
  { { "--init=a", "b" }, "'b' is too much" },
  { { "--init", "--summary" }, "'--init' can't be combined with '--summary'" },
  { { "--virtual-clock", "--init" }, "can't be combined with '--virtual-clock'" },
  { { "-e", "print(1)", "--init" }, "can't be combined with '-e'" },
  { { "--init", "a", "--init", "b" }, "can't be combined with '--init'" },
  { { "--init", "-" }, "can't be combined with '-'" }, { { "--init", "--", "a" }, "can't be combined with '--'" },
  { { "--init", "--runs" }, "can't be combined with '--runs'" },
  { { "--init=" }, "needs the name of a folder, or none: --init FOLDER" }, { { "--init", "" }, "needs the name" },
} do
  result = host.run("bash", { "-c", 'cd "$0" && exec "$@"', folder, binary, table.unpack(case[1]) })
  check.equal(result.status, 2, case[2])
  check.equal(result.stdout, "")
  check.contains(result.stderr, case[2])
end
assert(not fs.exists(folder .. "/a"))
check.equal(host.run(host.binary, { "--init", "--help" }).status, 0)
