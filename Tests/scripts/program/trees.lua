-- A program that is stopped ends with all that it has started, in whatever process group, and each process has its grace.
-- clock: real: signals and processes of the system
local check, host, flow = require "check", require "host", require "flow"

local folder = flow.fs.temp_dir()
local function path(name) return folder .. "/" .. name end
local function until_true(test, text)
  for _ = 1, 6000 do
    if test() then return end
    flow.sleep(0.01)
  end
  error(text, 2)
end
local function exists(name) return flow.fs.exists(path(name)) end
-- The number that a process has written to a file.
local function number(name)
  until_true(function() return exists(name) and flow.fs.read(path(name)):find "\n" end, name .. " hasn't begun")
  return math.tointeger(tonumber(flow.fs.read(path(name))))
end
local function has_ended(pid)
  local file = io.open("/proc/" .. pid .. "/stat")
  if not file then return true end
  local text = file:read "a"
  file:close()
  -- A zombie has ended; the process that has got it as a child may take its status later.
  return text == nil or text:find "%) [ZX]" ~= nil
end
local sleeper = 'sh -c "echo \\$\\$ >NAME; exec sleep 600" '

-- They have left the program's process group.
for k, words in ipairs {
  { "sh", "-c", "timeout 600 " .. sleeper:gsub("NAME", path "p1") .. "; echo x" },
  { "bash", "-c", "set -m; " .. sleeper:gsub("NAME", path "p2") .. "& wait" },
  { "sh", "-c", "setsid -w " .. sleeper:gsub("NAME", path "p3") .. "; echo x" },
  { "sh", "-c", "setsid -w sh -c '" .. sleeper:gsub("NAME", path "p4") .. "; :'; echo x" },
} do
  local task = flow.exec(words, { grace = 60 })
  local pid = number("p" .. k)
  check.equal(has_ended(pid), false)
  task:cancel "enough"
  task:wait()
  check.equal(has_ended(pid), true, words[3])
end

-- The direct child ends at SIGTERM; its own children get the time that they need.
local careful = [[sh -c 'trap "sleep 0.3; echo cleaned >>]] .. path "log" .. [[; exit" TERM
  echo $$ >]] .. path "NAME" .. [[; while :; do sleep 0.02; done']]
for k, text in ipairs { careful .. "; echo next", "setsid -w " .. careful .. "; echo next", "(" .. careful .. " & wait) & wait" } do
  local name = "c" .. k
  local task = flow.exec({ "sh", "-c", (text:gsub("NAME", name)) }, { grace = 60 })
  number(name)
  task:cancel "enough"
  task:wait()
  check.equal(flow.fs.read(path "log"), ("cleaned\n"):rep(k), text)
end

-- One that ignores SIGTERM is killed after the grace, also where another group has it.
for k, text in ipairs {
  [[trap "" TERM; echo $$ >NAME; while :; do sleep 0.02; done]],
  [[setsid -w sh -c 'trap "" TERM; echo $$ >NAME; while :; do sleep 0.02; done'; :]],
} do
  local name = "i" .. k
  local task = flow.exec({ "sh", "-c", (text:gsub("NAME", path(name))) }, { grace = 0.05 })
  local pid = number(name)
  task:cancel "enough"
  task:wait()
  until_true(function() return has_ended(pid) end, text)
end

-- One that a program starts when it is asked to end is asked, too; its parent waits for that.
local late = flow.exec({ "sh", "-c", ([[
  trap "setsid sh -c 'trap \"echo >LATE; exit\" TERM; while :; do sleep 0.02; done' &
    while ! test -e LATE; do sleep 0.02; done; exit" TERM
  echo $$ >FIRST; while :; do sleep 0.02; done]]):gsub("LATE", path "late"):gsub("FIRST", path "first") }, { grace = 4 })
number "first"
late:cancel "enough"
late:wait()
check.equal(exists "late", true)

-- flowlua under flowlua, both with programs: each gets one SIGTERM, and its cleanups aren't cut.
flow.fs.write(path "inner.lua", ([[
  local flow = require "flow"
  flow.op("InnerOp", function(ctx)
    ctx:defer(function()
      flow.sleep(0.3)
      io.open("%s", "a"):write(arg[1], "\n"):close()
    end)
    local program = flow.exec({ table.unpack(arg, 2) }, { capture = false, grace = 60 })
    io.open("%s" .. arg[1], "w"):write(flow.exec { "sh", "-c", "echo $PPID" }:await().stdout):close()
    program:await()
  end):run()
]]):format(path "cleaned", path "ready"))
local outer = flow.exec({
  host.binary, "--grace", "60", path "inner.lua", "outer", host.binary, "--grace", "60", path "inner.lua", "inner", "sleep", "600",
}, { check = false, grace = 60 })
number "readyouter"
number "readyinner"
outer:cancel "enough"
outer:wait()
check.lacks(outer.stderr, "again")
check.equal(flow.fs.read(path "cleaned"), "inner\nouter\n")

-- The end of flowlua reaches them too.
for k, last in ipairs { "os.exit(0)", "error 'enough'" } do
  local name = "e" .. k
  host.run(host.binary, { "-e", (([[
    local flow = require "flow"
    flow.exec { "sh", "-c", "setsid -w sh -c 'echo $$ >NAME; exec sleep 600'; :" }
    while not (flow.fs.exists "NAME" and flow.fs.read "NAME":find "\n") do flow.sleep(0.01) end
  ]]):gsub("NAME", path(name))) .. last })
  local pid = number(name)
  until_true(function() return has_ended(pid) end, last)
end

-- Signals that come while the end waits for them don't save those that have lost their parent and ignore SIGTERM.
for first, second in pairs { INT = "TERM", TERM = "INT" } do
  local name = "s" .. first
  host.run(host.binary, { "-e", (([[
    local flow = require "flow"
    flow.exec { "sh", "-c", "trap 'kill -FIRST $PPID; kill -SECOND $PPID; exit' TERM; " ..
      "setsid sh -c 'trap \"\" TERM INT; echo $$ >NAME; while :; do sleep 0.02; done' & wait" }
    while not (flow.fs.exists "NAME" and flow.fs.read "NAME":find "\n") do flow.sleep(0.01) end
    os.exit(0)
  ]]):gsub("NAME", path(name)):gsub("FIRST", first):gsub("SECOND", second)) })
  local pid = number(name)
  until_true(function() return has_ended(pid) end, first)
end

-- A script that fails leaves its programs their grace, whether an op has started them or not.
host.run(host.binary, { "-e", (([[
  local flow = require "flow"
  flow.exec({ "sh", "-c", "trap 'sleep 1.2; echo cleaned >CLEANED; exit' TERM; echo >READY; while :; do sleep 0.02; done" },
    { grace = 60 })
  while not flow.fs.exists "READY" do flow.sleep(0.01) end
  error "enough"
]]):gsub("CLEANED", path "cleaned2"):gsub("READY", path "ready2")) })
check.equal(exists "cleaned2", true)

-- A program that has become another user's can't be ended: the task doesn't wait for it.
if not os.execute 'test "$(id -u)" = 0' then return check.skip "only root can make a program of another user" end
local result = host.run("sh", { "-c", [[
  cd $1 && chmod 755 . && cp "$0" fl && cp "$(command -v setpriv)" sp && chmod 755 fl && chmod 4755 sp
  exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/ ./fl -e '
    local flow = require "flow"
    local words = { "./sp", "--reuid", "0", "--regid", "0", "--clear-groups", "sh", "-c",
      "echo $$ >>pids; echo ready; exec sleep 600" }
    local task = flow.exec(words, { grace = 0.05 })
    task:lines()()
    task:cancel "enough"
    task:wait()
    print(task.error)
    print(flow.op("SudoOp", { timeout = 0.2, run = function() flow.exec(words, { grace = 0.05 }):await() end }):run().error)
  ']], host.binary, folder })
os.execute("kill -KILL $(cat " .. path "pids" .. ")")
check.match(result.stdout, "^cancelled: enough; %./sp .* couldn't be ended and runs on as process %d+: " ..
  "Operation not permitted\n%[SudoOp%] timed out after 0.2s")
-- Nothing waits for the second one when that is known.
check.match(result.stderr, "timed out after 0.2s; %./sp .* couldn't be ended and runs on as process %d+: Operation not permitted")
