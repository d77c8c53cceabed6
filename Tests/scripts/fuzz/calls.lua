-- Random calls of every function and method of `flow`, with hostile values, neither crash nor hang.
-- Each 500 calls are a process of their own, half of them with
-- --virtual-clock.
--
--   calls.lua [COUNT [SEED]]            that many calls, 2,000 by default, from a seed on
--   calls.lua one SEED COUNT [LOG]      the calls of one process, each written to LOG before it is made
local host = require "host"

if arg[1] == "one" then
  local seed, count = math.tointeger(arg[2]), math.tointeger(arg[3])
  local log = arg[4] and assert(io.open(arg[4], "w"))
  if log then log:setvbuf "no" end
  local ending = seed // 2 % 6
  local function finish()
    if log then log:write "end\n" end
    if ending % 3 == 1 then os.exit(0) elseif ending % 3 == 2 then os.exit(0, true) else error "the end" end
  end
  require "fuzzer".new(seed, { calls = count, virtual = seed % 2 == 1, log = log, last = ending > 3 and finish }).run()
  if ending > 0 then finish() end
  return
end

local count = math.tointeger(arg[1] or os.getenv "FLOWLUA_SANITIZER" and 500 or 2000)
local seed = math.tointeger(arg[2] or 1)
local each <const> = 500
local log, folder = os.tmpname(), os.tmpname()
os.remove(folder)
-- The child works in a folder of its own, where it may write files. Of one that hangs the Swift runtime
-- shows what it does, at SIGQUIT.
local RUNNER = [[
  binary=$(realpath "$3") scripts=$PWD; mkdir "$1"; cd "$1" || exit 99
  LUA_PATH="$scripts/Tests/scripts/lib/?.lua;;" FLOWLUA_ROOT=$scripts timeout -s QUIT -k 30 "$2" "$binary" --workers 2 $7 \
    "$scripts/Tests/scripts/fuzz/calls.lua" one "$4" "$5" "$6" 2>stderr
  status=$?
  if ((status > 1)); then tail -c 8000 stderr >&2; fi
  grep -qE 'Fatal error|internal error' stderr && status=98
  cd "$scripts" && rm -rf "$1"
  exit $status]]

-- Stopped ops have no more time for their cleanups than a test has.
local grace = "--grace 0.05"
local limit = os.getenv "FLOWLUA_SANITIZER" and 300 or 20
local failures = {}
for first = 1, count, each do
  local result = host.run("bash", { "-c", RUNNER, "bash", folder, tostring(limit), host.binary, tostring(seed),
    tostring(each), log, grace .. (seed % 2 == 1 and " --virtual-clock" or "") })
  -- A process that keeps its runs may end while it waits for a message.
  if result.status > 1 and result.status ~= 75 then
    local lines = {}
    for line in io.lines(log) do lines[#lines + 1] = #line > 400 and line:sub(1, 400) .. "…" or line end
    failures[#failures + 1] = ("seed %d: %s after these calls, the last one not ended:\n  %s\nstderr: %s\n"
      .. "again with: %s %s%s Tests/scripts/fuzz/calls.lua one %d %d LOG"):format(seed,
      result.status == 124 and "a hang" or "status " .. result.status,
      table.concat(lines, "\n  ", math.max(1, #lines - 9)), result.stderr, host.binary, grace,
      seed % 2 == 1 and " --virtual-clock" or "", seed, each)
    io.stdout:write(failures[#failures], "\n")
    io.stdout:flush()
    if #failures == 10 then break end
  end
  seed = seed + 1
end
os.remove(log)
if #failures > 0 then error(("%d processes failed"):format(#failures), 0) end
