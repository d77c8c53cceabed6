-- Wrong limits and permissions end with status 2 and a message; right ones hold in workers, programs, sessions and runs.
-- clock: real: the virtual clock stands still while a program runs
local flow, fs, check, host = require "flow", require "flow.fs", require "check", require "host"
local folder = fs.temp_dir()
local _ <close> = setmetatable({}, { __close = function() fs.remove(folder, { recursive = true }) end })
for _, name in ipairs { "real", "other", "tmp", "script", "script/deep" } do fs.mkdir(folder .. "/" .. name) end
fs.write(folder .. "/real/file", "real")
fs.write(folder .. "/other/file", "other")
os.execute(("ln -s real %s/link"):format(folder))

-- Runs flowlua in the folder, with a folder of its own for temporary files.
local function run(words, options)
  options = options or {}
  local environment = { TMPDIR = folder .. "/tmp" }
  for name, value in pairs(options.env or {}) do environment[name] = value end
  return flow.exec({ host.binary, table.unpack(words) },
    { check = false, timeout = 60, stdin = options.stdin, cwd = folder, env = environment }):await()
end
local function prints(expected, words, options)
  local result = run(words, options)
  check.equal(result.stderr, "", table.concat(words, " "))
  check.equal(result.stdout, expected, table.concat(words, " "))
  check.equal(result.status, 0)
end

-- Each message is one line that names the option, what it needs, and what came; nothing is executed.
local memory, seconds = "number with the unit K, M, G or T, such as 512M, not ", "seconds greater than 0, not "
local whole, count = "whole number of seconds of at least 1, not ", "number of at least 20, not "
for _, case in ipairs {
  { "--memory-limit", "needs a size: --memory-limit 512M" }, { "--memory-limit=", "needs a size" },
  { "--memory-limit=0", memory .. "'0'" }, { "--memory-limit=-1", memory .. "'-1'" },
  { "--memory-limit=1.5G", memory .. "'1.5G'" }, { "--memory-limit=512", memory .. "'512'" },
  { "--memory-limit=99999999T", "'99999999T'" }, { "--memory-limit=0K", memory .. "'0K'" },
  { "--memory-limit=1Q", memory .. "'1Q'" }, { "--memory-limit=512m", memory .. "'512m'" },
  { "--memory-limit=M", memory .. "'M'" }, { "--memory-limit=+1M", memory .. "'+1M'" },
  { "--memory-limit= 1M", memory .. "' 1M'" }, { "--memory-limit=1M1", memory .. "'1M1'" },
  { "--memory-limit=1K", "1K is too small to start Lua" },
  { "--time-limit", "needs a number of seconds: --time-limit 60" }, { "--time-limit=", "needs a number of seconds" },
  { "--time-limit=0", seconds .. "'0'" }, { "--time-limit=-1", seconds .. "'-1'" },
  { "--time-limit=nan", seconds .. "'nan'" }, { "--time-limit=inf", seconds .. "'inf'" },
  { "--time-limit=1e9x", seconds .. "'1e9x'" }, { "--time-limit=0.0", seconds .. "'0.0'" },
  { "--time-limit=.", seconds .. "'.'" }, { "--time-limit=1.2.3", seconds .. "'1.2.3'" },
  { "--time-limit=60s", seconds .. "'60s'" },
  { "--cpu-limit", "needs a number of seconds: --cpu-limit 60" }, { "--cpu-limit=0", whole .. "'0'" },
  { "--cpu-limit=0.5", whole .. "'0.5'" }, { "--cpu-limit=x", whole .. "'x'" }, { "--cpu-limit=-1", whole .. "'-1'" },
  { "--cpu-limit=99999999999999999999", "'99999999999999999999'" },
  { "--open-files", "needs a number: --open-files 256" }, { "--open-files=3", count .. "'3'" },
  { "--open-files=19", count .. "'19'" }, { "--open-files=x", count .. "'x'" }, { "--open-files=1.5", count .. "'1.5'" },
  { "--open-files=999999999999999999999", "'999999999999999999999'" },
  { "--sandbox=loose", "takes no value, or 'strict': --sandbox=strict, not 'loose'" }, { "--sandbox=", "not ''" },
  { "--allow-read=real", "'--allow-read' belongs to '--sandbox', which isn't there" },
  { "--allow-write=real", "'--allow-write' belongs to '--sandbox'" }, { "--allow-net", "'--allow-net' belongs to '--sandbox'" },
  { "--allow-run", "'--allow-run' belongs to '--sandbox'" }, { "--allow-env=A", "'--allow-env' belongs to '--sandbox'" },
} do
  local result = run { case[1], "-e", "print 'executed'" }
  check.equal(result.status, 2, case[1])
  check.equal(result.stdout, "", case[1])
  check.contains(result.stderr, "'" .. case[1]:match "^[^=]+" .. "'", table.unpack(case, 2))
  check.equal(select(2, result.stderr:gsub("\n", "")), 1, "lines of " .. case[1])
end
for _, case in ipairs {
  { "--allow-read=", "needs a path: --allow-read=PATH" }, { "--allow-read", "needs a path: --allow-read=PATH" },
  { "--allow-read=real,,link", "in 'real,,link' one is empty" }, { "--allow-read=,real", "one is empty" },
  { "--allow-write=real,", "in 'real,' one is empty" }, { "--allow-read=none", "reading of 'none': No such file" },
  { "--allow-write=real/none", "writing of 'real/none': No such file" },
  { "--allow-write=real/file/none", "writing of 'real/file/none': Not a directory" },
  { "--allow-env=", "needs the name of a variable: --allow-env=NAME" }, { "--allow-env=A,,B", "one is empty" },
  { "--allow-env=A=B", "names of variables without values, not 'A=B'" },
  { "--allow-net=80", "takes no value" }, { "--allow-run=ls", "takes no value" },
} do
  local result = run { "--sandbox", case[1], "-e", "print 'executed'" }
  check.equal(result.status, 2, case[1])
  check.equal(result.stdout, "", case[1])
  check.contains(result.stderr, case[2])
  check.equal(select(2, result.stderr:gsub("\n", "")), 1, "lines of " .. case[1])
end
-- More than can pass is no limit.
prints("1\n", { "--time-limit=99999999999999999999", "--cpu-limit=1000000000000", "--memory-limit=8388607T",
  "--open-files=20", "-e", "print(1)" })

-- Options after the script are its own; what looks like a sandbox that isn't there is a warning.
fs.write(folder .. "/script/args.lua", "print(...)")
local late = run { "script/args.lua", "--sandbox", "--allow-net" }
check.equal(late.stdout, "--sandbox\t--allow-net\n")
check.contains(late.stderr, "warning: '--sandbox' is an argument of the script: options of flowlua come before it")
check.contains(run { "script/args.lua", "--sandbox=strict" }.stderr, "warning: '--sandbox=strict' is an argument")
prints("--sandbox\n", { "--sandbox", "script/args.lua", "--sandbox" })
prints("--sandbox\n", { "--", "script/args.lua", "--sandbox" })
prints("--allow-net\n", { "script/args.lua", "--allow-net" })

-- Paths: relative ones, links, files, several options, and no more than these.
local OPENS = "for _, p in ipairs { 'real/file', 'link/file', 'other/file' } do print(io.open(p) ~= nil) end"
prints("false\nfalse\nfalse\n", { "--sandbox", "-e", OPENS })
prints("true\ntrue\nfalse\n", { "--sandbox", "--allow-read=real", "-e", OPENS })
prints("true\ntrue\nfalse\n", { "--sandbox", "--allow-read", "link", "-e", OPENS })
prints("true\ntrue\nfalse\n", { "--sandbox", "--allow-read=" .. folder .. "/real/../link/file", "-e", OPENS })
prints("true\ntrue\ntrue\n", { "--sandbox", "--allow-read=real,other", "-e", OPENS })
prints("true\ntrue\ntrue\n", { "--sandbox", "--allow-read=real", "--allow-write=other", "-e", OPENS })
prints("true\tnil\n", { "--sandbox", "--allow-write=real", "-e",
  "print(io.open('real/new', 'w') ~= nil, (io.open('other/new', 'w')))" })
prints("true\tnil\n", { "--sandbox", "--allow-write=real/file", "-e",
  "print(io.open('real/file', 'w') ~= nil, (io.open('real/other', 'w')))" })

-- The environment.
local NAMES = [[for _, name in ipairs { "PATH", "HOME", "LANG", "TZ", "TERM", "NO_COLOR", "SECRET", "OTHER", "LUA_PATH" } do
  io.write(tostring(os.getenv(name)), " ") end print(os.getenv "TMPDIR" ~= nil)]]
local environment = { PATH = "/usr/bin", HOME = "/h", LANG = "C", TZ = "UTC", TERM = "dumb", NO_COLOR = "1", SECRET = "s",
  OTHER = "o", LUA_PATH = "?" }
prints("/usr/bin /h C UTC dumb 1 nil nil nil true\n", { "--sandbox", "-e", NAMES }, { env = environment })
prints("/usr/bin /h C UTC dumb 1 s nil nil true\n", { "--sandbox", "--allow-env=SECRET,NONE", "-e", NAMES }, { env = environment })
prints("/usr/bin /h C UTC dumb 1 s o ? true\n",
  { "--sandbox", "--allow-env=SECRET", "--allow-env", "OTHER,LUA_PATH", "-e", NAMES }, { env = environment })
local all = run({ "--sandbox", "--allow-run", "-e", "io.write(require 'flow'.exec { 'env' }:await().stdout)" }, { env = environment })
for name in all.stdout:gmatch "([%w_]+)=" do check.contains("PATH HOME LANG TZ TERM NO_COLOR TMPDIR", name) end

-- Limits in programs of the script, and in workers.
prints("64\n", { "--open-files=64", "-e", "io.write(require 'flow'.exec({ 'sh', '-c', 'ulimit -n' }):await().stdout)" })
prints("35\n", { "--cpu-limit=5", "--grace=25", "-e",
  "io.write(require 'flow'.exec({ 'sh', '-c', 'ulimit -Ht' }):await().stdout)" })
prints("[FillOp] not enough memory\n", { "--memory-limit=32M", "-e", [[
  local flow = require "flow"
  local run = flow.op("FillOp", { thread = "worker", run = function()
    local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(1e5) .. i end
  end }):run()
  print(run.error)]] })
prints("Too many open files\n", { "--open-files=30", "-e", [[
  local files = {}
  for i = 1, 100 do
    local file, why = io.open "/dev/null"
    if not file then print(why:match ": (.*)") break end
    files[i] = file
  end]] })
local limited = run { "--time-limit=0.2", "--grace=0.1", "-e", [[
  local flow = require "flow"
  flow.op("LoopOp", { thread = "worker", run = function() while true do end end }):run()]] }
check.equal(limited.status, 124)
check.contains(limited.stderr, "the time limit of 0.2s was exceeded")

-- Sessions and standard input.
prints("nil\n", { "--sandbox", "-" }, { stdin = "print((io.open 'real/file'))" })
prints("nil\n", { "--sandbox" }, { stdin = "print((io.open 'real/file'))" })
local session = run({ "--sandbox", "--memory-limit=64M", "-i" }, { stdin = "io.open 'real/file'\n(('x'):rep(1e9))\nprint 'next'\n" })
check.contains(session.stdout .. session.stderr, "Permission denied", "not enough memory", "next")
check.equal(run({ "--time-limit=0.2", "-i" }, { stdin = "while true do end\n" }).status, 124)

-- Kept runs.
fs.write(folder .. "/script/kept.lua", [[
  local flow = require "flow"
  local FirstOp = flow.op("FirstOp", { gives = { x = "integer" }, run = function(ctx) print "first" ctx:set("x", 1) end })
  local SecondOp = flow.op("SecondOp", { needs = { x = "integer" }, run = function(ctx)
    if arg[1] == "fail" then error "failed" end
    print("second", ctx:get "x", (io.open "real/file"))
  end })
  local run = flow.new("kept"):add(FirstOp):add(SecondOp):run()
  if not run.ok then os.exit(3, true) end]])
local kept = run { "--sandbox", "--keep", "script/kept.lua", "fail" }
check.equal(kept.status, 3, kept.stderr)
check.equal(kept.stdout, "first\n")
kept = run { "--sandbox", "--memory-limit=64M", "--time-limit=60", "--resume", "script/kept.lua" }
check.equal(kept.stdout, "second\t1\tnil\n")
check.match(kept.stderr, "^%S+: r%w+: 1 kept, [^\n]+\n$")
local stored = run { "--sandbox", "--time-limit=60", "--keep", "--store=other", "script/kept.lua" }
check.equal(stored.status, 0, stored.stderr)
check.contains(run { "--runs", "--store=other" }.stdout, "kept.lua")

-- Files of the host: those that are written at the end must be allowed.
fs.write(folder .. "/script/run.lua", [[require "flow".op("AnOp", function() end):run()]])
for _, option in ipairs { "--report", "--timeline", "--trace", "--otlp" } do
  local result = run { "--sandbox", option .. "=other/file.json", "script/run.lua" }
  check.equal(result.status, 2, option)
  check.contains(result.stderr, "'" .. option .. "' writes 'other/file.json'", "--allow-write")
  result = run { "--sandbox", "--allow-write=real", option .. "=link/file.json", "script/run.lua" }
  check.equal(result.stderr, "", option)
  check.equal(result.status, 0, option)
  assert(#fs.read(folder .. "/real/file.json") > 10, option)
  fs.remove(folder .. "/real/file.json")
end
check.equal(fs.read(folder .. "/other/file"), "other")
local events = run { "--sandbox", "--events=other/events", "script/run.lua" }
if events.status == 0 then check.contains(fs.read(folder .. "/other/events"), "AnOp")
else check.contains(events.stderr, "--events", "--allow-write") end
for _, option in ipairs { "--report=-", "--trace=-", "--timeline=-" } do
  check.contains(run { "--sandbox", option, "script/run.lua" }.stdout, "AnOp")
end
local collector = run { "--sandbox", "--otlp=http://127.0.0.1:9/", "script/run.lua" }
check.equal(collector.status, 2)
check.contains(collector.stderr, "'--otlp' sends to a collector: add --allow-net")

-- TMPDIR names the folder of a sandbox, which can be written, and is gone after the end, however that is.
local function is_empty()
  -- After SIGKILL another process removes it.
  for i = 1, 1000 do
    if #fs.list(folder .. "/tmp") == 0 then return true end
    flow.sleep(0.01)
  end
  return false, table.concat(fs.list(folder .. "/tmp"), " ")
end
local FOLDER = [[
  local fs = require "flow.fs"
  local path = os.getenv "TMPDIR"
  assert(path ~= "%s" and #fs.list(path) == 0)
  fs.mkdir(path .. "/made") fs.write(path .. "/made/file", "x") fs.write(path .. "/file", "x")
  assert(os.tmpname():sub(1, #path) == path or io.tmpfile())
  os.execute("chmod 0 " .. path .. "/made")
  print "ready" io.stdout:flush()
]]
for _, case in ipairs {
  { 0, "" }, { 3, "os.exit(3)" }, { 4, "os.exit(4, true)" }, { 1, "error 'failed'" },
  { 5, "require 'flow'.spawn(function() os.exit(5) end)" }, { 124, "while true do end" },
  { 124, "while true do pcall(string.find, ('x'):rep(40000), '.-.-.-b') end" },
} do
  local result = run { "--sandbox", "--allow-run", "--time-limit=" .. (case[1] == 124 and "0.2" or "60"), "--grace=0.1", "-e",
    FOLDER:format(folder .. "/tmp") .. case[2] }
  check.equal(result.status, case[1], case[2] .. result.stderr)
  -- A busy machine may reach the limit first.
  if case[1] ~= 124 then check.equal(result.stdout, "ready\n", case[2] .. result.stderr) end
  -- It is gone before the process has ended, unless that couldn't be stopped.
  if case[1] ~= 124 then check.equal(#fs.list(folder .. "/tmp"), 0, "folders after " .. case[2]) end
  assert(is_empty())
end
for _, name in ipairs { "TERM", "INT", "HUP", "KILL", "SEGV", "QUIT" } do
  local program = flow.exec({ "sh", "-c", "ulimit -c 0; exec \"$@\"", "sh", host.binary, "--sandbox", "-e",
    FOLDER:format "" .. "require 'flow'.sleep(1000)" },
    { check = false, timeout = 60, cwd = folder, env = { TMPDIR = folder .. "/tmp" } })
  for line in program:lines() do
    check.equal(line, "ready")
    check.equal(#fs.list(folder .. "/tmp"), 1)
    break
  end
  os.execute(("kill -%s %d"):format(name, program.pid))
  program:wait()
  assert(program.status ~= 0)
  assert(is_empty())
end

-- Every thread is restricted, seen from outside.
local THREADS = [[
  local flow = require "flow"
  local runs = {}
  for i = 1, 4 do
    runs[i] = flow.op("WorkOp", { thread = "worker", run = function() require "flow".sleep(1000) end }):start()
  end
  flow.op("BusyOp", { timeout = 100, run = function() flow.sleep(0.01) end }):run()
  print "ready" io.stdout:flush()
  flow.sleep(1000)]]
local function statuses(before, script)
  local words = { host.binary, table.unpack(before) }
  words[#words + 1] = "-e"
  words[#words + 1] = script
  local program <close> = flow.exec(words, { check = false, timeout = 60, cwd = folder })
  for line in program:lines() do check.equal(line, "ready") break end
  local count = 0
  for _, task in ipairs(fs.list(("/proc/%d/task"):format(program.pid))) do
    local file = io.open(task .. "/status")
    local text = file and file:read "a" or ""
    if file then file:close() end
    if text ~= "" then
      count = count + 1
      check.contains(text, "\nSeccomp:\t2\n", "\nNoNewPrivs:\t1\n")
      -- Of a superuser's capabilities those to open files are left.
      check.contains("0000000000000000 0000000000000006", text:match "CapEff:\t(%x+)")
    end
  end
  program:cancel()
  return count
end
assert(statuses({ "--sandbox" }, THREADS) >= 3)
assert(statuses({ "--sandbox", "--time-limit=100", "--memory-limit=512M" }, THREADS) >= 3)
check.equal(pcall(statuses, {}, THREADS), false)

-- The folder of a sandbox is gone, too, with more folders in each other than the process may have descriptors.
prints("made\n", { "--sandbox", "--open-files=30", "-e", [[
  local fs, path = require "flow.fs", os.getenv "TMPDIR"
  for i = 1, 100 do path = path .. "/a" fs.mkdir(path) end
  print "made"]] })
assert(is_empty())

-- More than the system allows: the message says how many that are.
local most = tonumber(io.popen "ulimit -Hn":read "l")
if most then
  local result = run { "--open-files=" .. most + 1, "-e", "print 'executed'" }
  check.equal(result.status, 2)
  check.equal(result.stdout, "")
  check.contains(result.stderr, "'--open-files'", tostring(most), tostring(most + 1))
end
