-- However flowlua ends, its programs and their descendants end with it.
-- clock: real: the virtual clock stands still while a program runs
local flow, host, check = require "flow", require "host", require "check"

local function running(marker)
  local list <close> = io.popen("grep -lsa '" .. marker .. "' /proc/[0-9]*/cmdline")
  local names = {}
  for name in list:lines() do
    -- Not the grep and its shell.
    local file <close> = io.open(name)
    local line = file and file:read("a") or ""
    if line:find("^sleep") then names[#names + 1] = name end
  end
  return #names
end

local number = 0
-- Runs a script that starts programs and then does what `ending` says.
-- signal: the script is sent it once its programs run.
local function ends(ending, signal, program)
  number = number + 1
  -- Seconds of a sleep that nobody else has.
  local marker = ("97%d.%d"):format(number, os.time())
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(([[
    local flow = require "flow"
    local command = %q
    local left = flow.exec({ "sh", "-c", command })
    local op = flow.ops.ExecOp({ "sh", "-c", command }, { stdin = "x" }):start()
    -- They report when they run: their shells wait, so nothing follows.
    while true do
      local list <close> = io.popen("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
      if select(2, list:read("a"):gsub("sleep %s", "")) >= 2 + 2 then break end
      flow.sleep(0.002)
    end
    io.write "ready\n"
    io.stdout:flush()
    %s
  ]]):format((program or "sleep %s & wait"):format(marker), marker, ending))
  file:close()
  local task = flow.exec({ host.binary, path }, { check = false, timeout = 100 })
  if signal then
    local pid
    while not pid do
      local list <close> = io.popen("grep -lsa '" .. path .. "' /proc/[0-9]*/cmdline")
      local self = io.open("/proc/self/stat"):read("n")
      for name in list:lines() do
        local candidate = tonumber(name:match("%d+"))
        local stat <close> = io.open("/proc/" .. candidate .. "/stat")
        local parent = stat and stat:read("a"):match("^%d+ %(flowlua%) %u (%d+)")
        if tonumber(parent) == self then pid = candidate end
      end
      flow.sleep(0.002)
    end
    while running(marker) < 2 do flow.sleep(0.002) end
    assert(os.execute("kill -" .. signal .. " " .. pid))
  end
  local result = task:await()
  os.remove(path)
  -- A process that was sent a signal dies when the system gets to it.
  for _ = 1, 30000 do
    if running(marker) == 0 then return result end
    flow.sleep(0.001)
  end
  error("programs are left after " .. ending .. " " .. (signal or ""))
end

check.equal(ends("os.exit(3)").status, 3)
check.equal(ends("os.exit(4, true)").status, 4)
local failed = ends("error 'over'")
check.equal(failed.status, 1)
check.contains(failed.stderr, "over")
check.equal(ends("coroutine.wrap(function() os.exit(5) end)()").status, 5)
check.equal(ends("flow.op('ExitOp', function() flow.sleep(0.001) os.exit(6) end):run()").status, 6)
for name, code in pairs { TERM = 15, HUP = 1 } do
  local result = ends("left:await()", name)
  check.equal(result.signal, code)
  check.equal(ends("while true do end", name).signal, code)
end
-- Signals that nobody catches end it too.
for name, code in pairs { USR1 = 10, USR2 = 12, VTALRM = 26, PROF = 27, XCPU = 24 } do
  check.equal(ends("left:await()", name).signal, code)
end
-- The first Ctrl-C is an error of the script.
for _, ending in ipairs { "left:await()", "while true do end" } do
  local result = ends(ending, "INT")
  check.equal(result.status, 130)
  check.contains(result.stderr, "interrupted!")
end
-- The reader of its output goes away.
check.equal(ends("io.stdout:close() left:await()", "PIPE").signal, 13)
-- An ignored signal stays ignored. (Not so SIGINT, as lua5.4 does it.)
local ignoring = flow.exec({ "sh", "-c",
  "trap '' TERM; exec \"$0\" -", host.binary },
  { stdin = [[
    local flow = require "flow"
    local task = flow.exec { "sh", "-c", "kill -TERM $PPID; exit 0" }
    print(task:await().status)
  ]] }):await()
check.equal(ignoring.stdout, "0\n")
-- One that ignores being asked is killed; it costs the grace period, so there is one of them.
check.equal(ends("os.exit(7)", nil, "trap '' TERM; sleep %s & while :; do wait; done").status, 7)
