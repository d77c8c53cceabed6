-- Ctrl-C inside a C function is an error of that function, like lua5.4's.
-- The error can be caught at the call; its message and traceback name place and function.
local host = require "host"
local check = require "check"
-- Reads from a pipe in which nothing comes; the signal is for this process alone.
local RUNNER = [[
  output=$(mktemp)
  script=$(mktemp)
  printf '%s' "$2" >"$script"
  {
    sleep 20 &
    echo $! >"$output.feeder"
    wait
  } | {
    exec 3<&0
    "$1" "$script" <&3 &
    echo $! >"$output.process"
    wait $!
    echo "status $?"
    kill $(cat "$output.feeder")
  } >"$output" 2>&1 &
  until grep -q ready "$output"; do sleep 0.01; done
  sleep 0.1
  kill -s INT $(cat "$output.process")
  for i in $(seq 500); do grep -q "^status" "$output" && break; sleep 0.01; done
  kill -s KILL $(cat "$output.process") 2>/dev/null
  sed "s|$1|PROGRAM|g; s|$script|SCRIPT|g" "$output"
  rm -f "$output" "$output.process" "$output.feeder" "$script"
]]
local function interrupted(program, text)
  text = "io.stdout:setvbuf 'no'\n" .. text
  local result = host.run("bash", { "-c", RUNNER, "bash", program, text })
  -- Without a shell's own words.
  return (result.stdout:gsub("lua5%.4", "PROGRAM"))
end
local pipe = "local pipe = io.stdin print 'ready' "
local texts = {
  pipe .. "print(pcall(pipe.read, pipe)) print 'after'",
  pipe .. "print(pcall(function() pipe:read() end)) print 'after'",
  pipe .. "local function f() return (pipe:read()) end f()",
  pipe .. "pipe:read()",
  pipe .. "for line in pipe:lines() do print(line) end",
  pipe .. "print(pcall(table.sort, { 2, 1 }, function() pipe:read() end)) print 'after'",
  pipe .. "print(pcall(string.gsub, 'a', 'a', function() pipe:read() end))",
  pipe .. "print(xpcall(pipe.read, debug.traceback, pipe))",
  "print 'ready' while true do end",
  "print 'ready' local function f() while true do end end f()",
  "print 'ready' print(pcall(function() while true do end end)) print 'after'",
}
for _, text in ipairs(texts) do
  local expected = interrupted("lua5.4", text)
  check.contains(expected, "interrupted!", "status ")
  check.equal(interrupted(host.binary, text), expected, text)
end

-- In a coroutine it is raised in there, where lua5.4 hooks the main one alone.
check.equal(interrupted(host.binary, pipe .. [[ print(coroutine.resume(coroutine.create(function() pipe:read() end)))]]),
  "ready\nfalse\tSCRIPT:2: interrupted!\nstatus 0\n")
-- In an op as well, where it is the op's error.
local output = interrupted(host.binary, [[
  local flow = require "flow"
  local run = flow.op("ReadOp", function(ctx)
    print "ready"
    ctx:set("result", { pcall(io.read) })
    ctx:set("caught", true)
  end):run()
  print(run.ok, run.data.caught, run.data.result[1], run.data.result[2])]])
check.contains(output, "true\ttrue\tfalse\tinterrupted!\n")
