-- Programs that fork, leave their group, ignore signals or ask end with what stops them, and leave the terminal as it was.
-- python: pyte
-- clock: real: programs and a terminal are outside
--
--   programs.lua [COUNT [SEED [FIRST]]]     that many mixtures of programs, 3 by default, drawn from a seed; the first is
--                                           number FIRST
local flow, terminal = require "flow", require "terminal"
local fs = flow.fs

local count = math.tointeger(arg[1] or 3)
local seed = math.tointeger(arg[2] or os.time())
local first = math.tointeger(arg[3] or 1)
local random = math.random
local function any(list) return list[random(#list)] end

local folder = fs.temp_dir()
local files = 0
local function file(text, ending)
  files = files + 1
  local path = ("%s/p%d.%s"):format(folder, files, ending or "sh")
  fs.write(path, text)
  return path
end

-- Programs that run until they are ended. All programs are files, which need no quotes within quotes.
local leaves = {
  "exec sleep 600", "sleep 600", "while :; do sleep 0.02; done", "cat /dev/zero >/dev/null",
  "trap '' TERM; while :; do sleep 0.02; done", "trap '' TERM HUP INT; while :; do sleep 0.02; done",
  "trap 'sleep 0.05; exit 3' TERM INT; while :; do sleep 0.02; done", "kill -STOP $$", "exit 0", "exit 1", "sleep 0.1",
  "while :; do sleep 0.1 & sleep 0.01; done", "trap '' TERM; while :; do sleep 0.1 & sleep 0.01; done",
  "printf 'Name: ' >/dev/tty; read -r x </dev/tty",
  "stty -echo </dev/tty; printf 'Password: ' >/dev/tty; read -r x </dev/tty; stty echo </dev/tty",
  "trap '' INT TERM; stty raw -echo </dev/tty; read -r x </dev/tty",
  "(stty -icanon </dev/tty; sleep 600)",
}
-- Starts others. A process whose parent has ended isn't the program's any more: each parent here waits, and nothing is
-- stopped before all have begun: what is forked in the moment of a stop may lose its parent before it is found.
local PYTHON = [=[
import os, signal, sys
%s
child = os.fork()
if child == 0:
    %s
    os.execvp("sh", ["sh", sys.argv[1]])
os.waitpid(child, 0)
]=]
local wrappers = {
  "sh FILE; :", "sh FILE & sh OTHER & wait", "(sh FILE & wait) & wait", "setsid -w sh FILE", "setsid -w sh FILE; :",
  "timeout 600 sh FILE", "exec timeout --foreground 600 sh FILE", "nohup sh FILE >/dev/null 2>&1",
  "setsid -w setsid -w sh FILE & wait", "bash -c 'set -m; sh FILE & sh OTHER & wait'", "env sh FILE | cat",
  "python3 FORK FILE",
}
local asks, begun
local function program(depth)
  if depth == 0 or random(4) == 1 then
    local leaf = any(leaves)
    asks = asks or leaf:find "/dev/tty" ~= nil
    begun[#begun + 1] = ("%s/begun%d"):format(folder, files)
    return file((": >%s; %s"):format(begun[#begun], leaf))
  end
  return file((any(wrappers):gsub("%u%u%u%u+", function(name)
    if name ~= "FORK" then return program(depth - 1) end
    return file(PYTHON:format(any { "", "os.setpgid(0, 0)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)" },
      any { "os.setsid()", "os.setpgid(0, 0)", "signal.signal(signal.SIGHUP, signal.SIG_IGN)" }), "py")
  end)))
end

-- Those that carry the mark and haven't ended, with what they are.
local function alive(mark)
  local words = [[for p in $(grep -lsa "FLOWLUA_MIXTURE=$1" /proc/[0-9]*/environ); do
    p=${p%/environ}; grep -qs '^State:.[ZX]' $p/status || printf '%s: %s\n' $p "$(tr '\0' ' ' <$p/cmdline)"; done]]
  return flow.exec({ "sh", "-c", words, "sh", mark }):await().stdout
end
local function kill(mark)
  for pid in alive(mark):gmatch "/proc/(%d+): " do os.execute("kill -KILL " .. pid .. " 2>/dev/null") end
end
local function eventually(test, what)
  for _ = 1, 3000 do
    local found = test()
    if found then return found end
    flow.sleep(0.01)
  end
  error(what(), 0)
end

local function mixture(number)
  math.randomseed(seed, number)
  asks, begun = false, {}
  local mark = ("%s.%d."):format(folder:match "[^/]+$", number)
  local lines = {}
  local tasks = random(4)
  for i = 1, tasks do
    lines[#lines + 1] = ("local task%d = flow.exec({ 'sh', %q }, "):format(i, program(3))
      .. ("{ check = false, timeout = %.3f, grace = %.3f, "):format(2 + random(), random() * 0.3)
      .. ("capture = %s, env = { FLOWLUA_MIXTURE = %q } })"):format(any { "true", "true", "false" }, mark)
  end
  -- One that asks may hold up others of its group.
  lines[#lines + 1] = "local all = true"
  for _, path in ipairs(begun) do
    lines[#lines + 1] = ("while not flow.fs.exists %q and flow.now() < 2 do flow.sleep(0.005) end"):format(path)
    lines[#lines + 1] = ("all = all and flow.fs.exists %q"):format(path)
  end
  lines[#lines + 1] = ([[flow.fs.write("%s/self%d", io.open("/proc/self/stat"):read "n" .. (all and " all" or "") .. "\n")]])
    :format(folder, number)
  for i = 1, tasks do
    if random(2) == 1 then
      lines[#lines + 1] = ("flow.spawn(function() flow.sleep(%.3f) task%d:cancel() end)"):format(random(), i)
    end
  end
  lines[#lines + 1] = any { "", "", "", "flow.sleep(0.3) os.exit(0)", "flow.sleep(0.2) error 'enough'" }
  local session = terminal.start(table.concat(lines, "\n"), { shell = true })
  local function fail(what)
    local text = table.concat(lines, "\n")
    for path in text:gmatch '{ \'sh\', "([^"]+)"' do
      text = ("%s\n%s: %s"):format(text, path, flow.exec({ "sh", "-c", [[
        show() { for f in $(grep -o "$1/p[0-9]*\.[a-z]*" $2); do printf '%s: %s\n' $f "$(cat $f)"; show $1 $f; done; }
        cat $2; echo; show $1 $2]], "sh", folder, path }):await().stdout)
    end
    kill(mark)
    error(("seed %d, number %d: %s\n%s"):format(seed, number, what, text), 0)
  end
  session:type(("stty -a >%s/before\n$RUN\n"):format(folder))
  local function shown() return session:text() end
  local line = eventually(function()
    return fs.exists(folder .. "/self" .. number) and fs.read(folder .. "/self" .. number):match "^(.*)\n"
  end, function() fail("it doesn't begin:\n" .. shown()) end)
  local self = line:match "%d+"
  local interrupts = any { 0, 0, 1, 2 }
  for _ = 1, interrupts do
    flow.sleep(random() * 0.8)
    session:type "\3"
  end
  eventually(function()
    local stat = io.open("/proc/" .. self .. "/stat")
    if not stat then return true end
    local text <close> = stat
    return (text:read "a" or ") Z"):find "%) [ZX]"
  end, function() fail("it doesn't end:\n" .. shown()) end)
  -- The terminal gives Ctrl-C to the program that asks: if that ends, nobody knows any more which processes it has left.
  if asks and interrupts > 0 or not line:find "all" then kill(mark) end
  eventually(function() return alive(mark) == "" end, function() fail("left are\n" .. alive(mark) .. shown()) end)
  session:type(("\nstty -a >%s/after%d; : >%s/over%d\n"):format(folder, number, folder, number))
  eventually(function() return fs.exists(folder .. "/over" .. number) end,
    function() fail("the shell doesn't continue:\n" .. shown()) end)
  session:type "exit\n"
  session:finish()
  local before, after = fs.read(folder .. "/before"), fs.read(folder .. "/after" .. number)
  if before ~= after then fail(("the terminal was\n%s\nis\n%s\n%s"):format(before, after, shown())) end
end

for number = first, first + count - 1 do mixture(number) end
