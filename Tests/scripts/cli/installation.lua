-- scripts/install makes a working installation, and scripts/uninstall leaves nothing.
local host, check = require "host", require "check"

local function run(command, options)
  return host.run("sh", { "-c", command }, options)
end

local function lines(text)
  local found = {}
  for line in text:gmatch("[^\n]+") do found[#found + 1] = line end
  return found
end

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local scratch = run("mktemp -d").stdout:gsub("\n", "")
local guard <close> = setmetatable({}, { __close = function() run("rm -rf " .. scratch) end })
-- Bytes that sed, a shell or a JSON file could take for something else; there is a folder already.
local prefix = scratch .. "/a b&c|d"
local environment = { FLOWLUA_BINARY = host.binary }
run(("mkdir -p '%s/bin'"):format(prefix))

local function install(more)
  for name, value in pairs(environment) do more[name] = value end
  local result = host.run("scripts/install", { prefix }, { environment = more })
  check.equal(result.stderr, "")
  check.equal(result.status, 0)
  return result.stdout
end

local said = install {}
check.contains(said, " is installed: " .. prefix .. "/bin/flowlua\n", prefix .. "/share/doc/flowlua",
  prefix .. "/bin is not on the PATH.\n")
check.lacks(install { PATH = os.getenv "PATH" .. ":" .. prefix .. "/bin" }, "PATH")
local version = run(("'%s/bin/flowlua' --version"):format(prefix)).stdout:match "flowlua (%S+)\n"
-- `-dev`: the next version, before its release.
local coming = version:match "^(%d+%.%d+%.%d+)%-dev$"
assert(coming or version:find "^%d+%.%d+%.%d+$", version)
local rock = coming and coming .. "dev" or version
local installed = run(("cd '%s' && find . -type f -not -path './share/doc/*' | LC_ALL=C sort"):format(prefix)).stdout
check.same(lines(installed), {
  "./bin/flowlua",
  "./lib/systemd/system/flowlua-join.service",
  "./share/bash-completion/completions/flowlua",
  "./share/flowlua/flowlua-annotations-" .. rock .. "-1.rockspec",
  "./share/flowlua/library/flow.csv.d.lua",
  "./share/flowlua/library/flow.d.lua",
  "./share/flowlua/library/flow.fs.d.lua",
  "./share/flowlua/library/flow.http.d.lua",
  "./share/flowlua/library/flow.json.d.lua",
  "./share/flowlua/library/flow.testing.d.lua",
  "./share/flowlua/luarc.json",
  "./share/flowlua/manifest",
  "./share/man/man1/flowlua.1",
  "./share/zsh/site-functions/_flowlua",
})

-- The program works from there.
local script = os.tmpname()
local file = assert(io.open(script, "w"))
file:write 'local run = require "flow".op("AOp", function(ctx) ctx:set("a", 1) end):run() print(run.data.a)'
file:close()
check.equal(run(("'%s/bin/flowlua' %s"):format(prefix, script)).stdout, "1\n")
os.remove(script)

-- So do the examples, whose comments say how they are started; the articles are readable without the sources.
local example = run(("cd '%s/share/doc/flowlua/examples' && ../../../../bin/flowlua cases.lua"):format(prefix))
check.equal(example.status, 0)
check.equal(example.stdout ~= "", true)
check.lacks(run(("cd '%s/share/doc/flowlua' && cat examples/*.lua articles/*.md"):format(prefix)).stdout,
  "scripts/flowlua", "<doc:")

-- The article shows the service as it is installed below /usr/local.
check.contains(read(prefix .. "/lib/systemd/system/flowlua-join.service"), "ExecStart=" .. prefix .. "/bin/flowlua --sandbox ")
check.contains(read "Sources/FlowScripting/FlowScripting.docc/RunningTheQueue.md",
  (read "scripts/install.d/flowlua-join.service":gsub("@PREFIX@", "/usr/local")))

-- The settings name the folder with the annotations, which are Lua.
local settings = read(prefix .. "/share/flowlua/luarc.json")
check.contains(settings, ('"%s/share/flowlua/library"'):format(prefix))
for _, name in ipairs {
  "flow", "flow.csv", "flow.fs", "flow.http", "flow.json", "flow.testing",
} do
  local text = read(("%s/share/flowlua/library/%s.d.lua"):format(prefix, name))
  check.equal(text:match "^%-%-%-@meta ([^\n]+)", name)
  assert(load(text, name))
end
local rockspec = {}
assert(load(read(("%s/share/flowlua/flowlua-annotations-%s-1.rockspec"):format(prefix, rock)),
  "rockspec", "t", rockspec))()
check.equal(rockspec.package, "flowlua-annotations")
check.equal(rockspec.version, rock .. "-1")
check.same(rockspec.build.copy_directories, { "library" })

-- The manual page and both completions know each option; the page has the version.
local page = read(prefix .. "/share/man/man1/flowlua.1")
local bash = read(prefix .. "/share/bash-completion/completions/flowlua")
local zsh = read(prefix .. "/share/zsh/site-functions/_flowlua")
check.contains(page, ".Os \"flowlua " .. version .. "\"", prefix .. "/share/flowlua/luarc.json")
check.lacks(page .. settings, "@VERSION@", "@PREFIX@", "@OPTIONS@")
local lint = run(("command -v mandoc >/dev/null || exit 0; mandoc -T lint -W warning '%s/share/man/man1/flowlua.1'"):format(prefix))
check.equal(lint.stdout, "")
local count = 0
for option in run(("'%s/bin/flowlua' --help"):format(prefix)).stdout:gmatch "\n +%-%-(%l[%l-]*)" do
  count = count + 1
  check.contains(page, ".It Fl -" .. option)
  check.contains(bash, "--" .. option)
  assert(zsh:find("'%*?%-%-" .. option:gsub("%-", "%%-") .. "[=%[]"), option .. " isn't completed in zsh")
end
assert(count >= 8, count)

-- Completion in bash: the last word is the one to complete.
local function complete(...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = "'" .. word .. "'" end
  local result = host.run("bash", { "-c", ([[
    source '%s/share/bash-completion/completions/flowlua'
    COMP_WORDS=(flowlua %s) COMP_CWORD=%d
    _flowlua
    printf '%%s\n' "${COMPREPLY[@]}"
  ]]):format(prefix, table.concat(words, " "), #words) })
  check.equal(result.stderr, "")
  return (result.stdout:gsub("\n", " "))
end
check.equal(complete "--vi", "--virtual-clock ")
check.equal(complete "--summary=j", "json ")
check.equal(complete("--summary", "=", "t"), "text ")
check.equal(complete("--summary", "="), "text json ")
check.equal(complete "Tests/scripts/cli/install", "Tests/scripts/cli/installation.lua ")
check.equal(complete("--graph", "READ"), "README.md ")
check.equal(complete "--sandbox=", "strict ")
check.equal(complete("--sandbox", "=", "strict", "--allow-read=CHANGELOG.md,READ"), "CHANGELOG.md,README.md ")
check.equal(complete("--time-limit", "60", "READ"), "README.md ")
check.equal(complete("--annotations", "Test"), "Tests ")
check.equal(complete("--init", "Test"), "Tests ")
check.equal(complete("--ini"), "--init ")
check.equal(complete("--forget", "--ol"), "--older-than ")
check.equal(complete("--forget", ""), " ")
check.equal(complete("--forget", "r7k2", "--sto"), "--store --store-limit ")
check.equal(complete("--forget", "r7k2", "READ"), "README.md ")
check.equal(complete("--workers", ""), " ")
check.equal(complete("--color", "al"), "always ")
check.equal(complete("--otlp", "spans.json", "READ"), "README.md ")
check.equal(complete("--otlp", "script.lua", "--ver"), " ", "the script isn't the value of --otlp")
check.equal(complete("--check", "--summary", "=", "json", "--vers"), "--version ")
check.equal(complete("script.lua", "--ver"), " ", "options behind the script are its own")

-- Once more in its place; then nothing is left but what there was, and what somebody has added.
install {}
run(("touch '%s/share/flowlua/library/own'"):format(prefix))
local removed = host.run("scripts/uninstall", { prefix })
check.equal(removed.stderr, "")
check.equal(removed.status, 0)
local function left() return lines(run(("cd '%s' && find . | LC_ALL=C sort"):format(prefix)).stdout) end
check.same(left(), {
  ".", "./bin", "./share", "./share/flowlua", "./share/flowlua/library", "./share/flowlua/library/own",
})
run(("rm -r '%s/share'"):format(prefix))
install {}
check.equal(host.run("scripts/uninstall", { prefix }).status, 0)
check.same(left(), { ".", "./bin" })
check.contains(host.run("scripts/uninstall", { prefix }).stderr, "isn't installed")

-- Below DESTDIR, where files still name the prefix.
install { DESTDIR = scratch .. "/dest" }
check.contains(read(scratch .. "/dest" .. prefix .. "/share/flowlua/luarc.json"), ('"%s/'):format(prefix))
check.equal(host.run("scripts/uninstall", { prefix }, { environment = { DESTDIR = scratch .. "/dest" } }).status, 0)
check.equal(run(("find '%s/dest' -type f"):format(scratch)).stdout, "")
check.contains(host.run("scripts/install", { "--help" }).stderr, "unknown option: --help")

-- The changelog's newest version is the program's, unless that isn't released.
local changelog = read "CHANGELOG.md"
check.contains(changelog, "\n## [Unreleased]\n")
local newest = changelog:match "\n## %[(%d[^]]*)%]"
assert(coming and newest ~= coming or newest == version, "CHANGELOG.md ends with " .. tostring(newest))
