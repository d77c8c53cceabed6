-- Signals at random moments, even during the start, end a script as documented or not at all.
-- None crashes the program, nothing hangs, and no child process is left over.
--
--   signals.lua [COUNT [SEED]]     that many signals, 24 by default, from a seed on
local host = require "host"

local count = math.tointeger(arg[1] or 24)
local seed = math.tointeger(arg[2] or 1)
math.randomseed(seed)
local random = math.random

-- Scripts that don't end by themselves, but for the last one.
local SETUP = [[
  local flow = require "flow"
  local SlowOp = flow.op("SlowOp", { primary_input = "n", run = function(ctx)
    ctx:defer(function() flow.sleep(0.002) end)
    local x <close> = setmetatable({}, { __close = function() flow.sleep(0.001) end })
    flow.sleep(100)
  end })
  local items = {}
  for i = 1, 200 do items[i] = i end
  local function group(op, limit)
    return flow.new("g"):data { items = items }:add_grouped(op, { input = "items", max_concurrent = limit })
  end
  local function busy() while true do end end
]]
local scripts = {
  busy = "busy()",
  catching = "while true do pcall(busy) end",
  collecting = "while true do setmetatable({}, { __gc = function() end }) collectgarbage 'step' end",
  coroutines = "while true do coroutine.wrap(function() coroutine.yield(1) end)() end",
  sleeping = "flow.sleep(100)",
  short_sleeps = "flow.op('NapOp', function() while true do flow.sleep(0) end end):run()",
  run = "SlowOp:run()",
  many = "for i = 1, 300 do SlowOp:start() end flow.sleep(100)",
  flow = [[flow.new("f"):add(SlowOp):add_finally(flow.op("CloseOp", function() flow.sleep(0.001) end))
    :did_finish(function() flow.sleep(0.001) end):run()]],
  group = "group(SlowOp, 50):run()",
  quick_group = [[while true do group(flow.op("ItemOp", { primary_input = "n",
    run = function(ctx) if ctx.index % 20 == 0 then flow.sleep(0) end end })):run() end]],
  workers = [[flow.op("LoopOp", { thread = "worker", run = busy }):start()
    group(flow.op("ItemOp", { thread = "worker", primary_input = "n",
      run = function(ctx) flow.sleep(0.001) ctx:set("m", { ctx:get "n" }) end })):run()
    flow.sleep(100)]],
  programs = [[for i = 1, 3 do flow.exec { "sh", "-c", "sleep 100 & wait" } end
    while true do pcall(function() flow.exec { "echo", ("x"):rep(100000) }:await() end) flow.sleep(0.001) end]],
  program = "flow.exec { 'sleep', '100' }:await()",
  uncaptured = "flow.exec({ 'sleep', '100' }, { capture = false }):await()",
  comparator = "table.sort({ 1, 2, 3 }, function(a, b) SlowOp:run() return a < b end)",
  testing = "require 'flow.testing'.run(flow.op('AOp', busy))",
  retries = "flow.op('FailOp', { retry = { attempts = 1 << 40, delay = 0.0005 }, run = error }):run()",
  timeouts = "while true do flow.op('BusyOp', { timeout = 0.002, run = busy }):run() end",
  machine = [[flow.machine { name = "m", start = "a", max_transitions = 1 << 40,
    flow.step("a", { run = function() flow.sleep(0) end, flow.next(flow.stay()) }) }:run()]],
  shell = "while true do os.execute 'true' end",
  reading = "io.read()",
  ends = "for i = 1, 50 do SlowOp:start() end flow.sleep(0.02) error 'the end'",
}
local names = {}
for name, text in pairs(scripts) do
  names[#names + 1] = name
  scripts[name] = SETUP .. text
end
table.sort(names)

-- Signals that end a process, and with which status; the others don't. PIPE and those after it end it at once.
local ending = { INT = { 130, 1 }, TERM = { 143 }, HUP = { 129 }, PIPE = { 141 }, USR1 = { 138 }, USR2 = { 140 },
  VTALRM = { 154 }, XCPU = { 152 }, QUIT = { 131 } }
local signals = { "INT", "TERM", "HUP", "INT", "TERM", "HUP", "PIPE", "USR1", "USR2", "VTALRM", "XCPU", "QUIT",
  "CHLD", "WINCH", "CONT", "URG", "TSTP CONT", "STOP CONT" }

-- Starts $1 on $2 and sends it signals: the rest are pairs of a delay and a signal. A process that still runs is sent
-- SIGTERM, and SIGKILL after a minute. Its children carry $3 in their environment.
local RUNNER = [=[
  ulimit -c 0
  SWIFT_BACKTRACE=enable=no FLOWLUA_SIGNALS=$3 env --default-signal=INT,QUIT "$1" --workers 2 "$2" \
    <$4 >/dev/null 2>$2.err &
  process=$!
  file=$2 marker=FLOWLUA_SIGNALS=$3
  shift 4
  while (($#)); do
    sleep "$1"
    kill -s "$2" $process 2>/dev/null
    shift 2
  done
  sleep 0.05
  kill -s TERM $process 2>/dev/null
  poll() { for ((i = 0; i < 3000; i++)); do "$@" && break; sleep 0.02; done; }
  ended() { ! kill -s 0 $process 2>/dev/null; }
  poll ended
  kill -s KILL $process 2>/dev/null
  wait $process
  status=$?
  none_left() { left=$(grep -lsa "$marker" /proc/[0-9]*/environ); [[ ! $left ]]; }
  poll none_left
  for process in $left; do tr '\0' ' ' <"${process%environ}cmdline" | sed 's/^/left over: /'; done
  cat "$file.err" >&2
  exit $status]=]

local fifo = os.tmpname()
os.remove(fifo)
os.execute("mkfifo " .. fifo)
local endless <close> = assert(io.open(fifo, "r+"))
local failures, sent, number = 0, 0, 0
while sent < count do
  number = number + 1
  local name = names[random(#names)]
  local arguments, expected, shown = {}, { [143] = true }, {}
  if name == "ends" then expected[1] = true end
  for _ = 1, random(3) do
    local delay = ("%.4f"):format(random() ^ 2 * 0.12)
    for signal in signals[random(#signals)]:gmatch "%u+%d?" do
      for _, status in ipairs(ending[signal] or {}) do expected[status] = true end
      arguments[#arguments + 1], arguments[#arguments + 2] = delay, signal
      shown[#shown + 1] = delay .. " " .. signal
      sent, delay = sent + 1, "0.01"
    end
  end
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write(scripts[name])
  file:close()
  local result = host.run("bash", { "-c", RUNNER, "bash", host.binary, path, ("%d.%d"):format(seed, number), fifo,
    table.unpack(arguments) })
  os.remove(path)
  os.remove(path .. ".err")
  if not expected[result.status] or result.stdout ~= "" or result.stderr:find "Fatal error" then
    failures = failures + 1
    print(("seed %d, number %d: '%s', sent %s: status %d\n%s%s"):format(seed, number, name,
      table.concat(shown, ", "), result.status, result.stdout, result.stderr:sub(1, 2000)))
  end
end
os.remove(fifo)
if failures > 0 then error(("%d of %d scripts ended badly, seed %d"):format(failures, number, seed), 0) end
