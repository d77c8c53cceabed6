-- Runs the binary under test, or lua5.4, on a text; compares the two.
local check = require "check"

local host = {}

local first = 0
while arg[first - 1] do first = first - 1 end
host.binary = arg[first]

local function quoted(text)
  return "'" .. text:gsub("'", [['\'']]) .. "'"
end

local function with_file(text)
  local name = os.tmpname()
  local file = assert(io.open(name, "wb"))
  file:write(text)
  file:close()
  return name
end

local function take(name)
  local file = assert(io.open(name, "rb"))
  local text = file:read("a")
  file:close()
  os.remove(name)
  return text
end

-- Runs a program with arguments; returns { status, stdout, stderr }.
-- options: stdin = text, environment = { NAME = value }
function host.run(program, arguments, options)
  options = options or {}
  local words = {}
  for name, value in pairs(options.environment or {}) do
    words[#words + 1] = name .. "=" .. quoted(value)
  end
  words[#words + 1] = quoted(program)
  for _, argument in ipairs(arguments) do words[#words + 1] = quoted(argument) end
  local stdin, stdout, stderr = with_file(options.stdin or ""), os.tmpname(), os.tmpname()
  local _, how, status = os.execute(("%s <%s >%s 2>%s"):format(
    table.concat(words, " "), stdin, stdout, stderr))
  os.remove(stdin)
  if how == "signal" then status = 128 + status end
  return { status = status, stdout = take(stdout), stderr = take(stderr) }
end

-- Runs a text as a script file of flowlua. The name of the file is `$SCRIPT` in what is printed.
function host.script(text, arguments, options, program)
  local name = with_file(text)
  local words = {}
  for _, word in ipairs(options and options.before or {}) do words[#words + 1] = word end
  words[#words + 1] = name
  for _, word in ipairs(arguments or {}) do words[#words + 1] = word end
  local result = host.run(program or host.binary, words, options)
  os.remove(name)
  local pattern = name:gsub("%p", "%%%0")
  result.stdout = result.stdout:gsub(pattern, "$SCRIPT")
  result.stderr = result.stderr:gsub(pattern, "$SCRIPT")
  return result
end

local SIGNALLED = [[
  output=$(mktemp) signals=$1
  shift
  timeout -s KILL 100 "$@" >"$output" 2>&1 &
  timer=$!
  until grep -q ready "$output"; do sleep 0.01; done
  sleep 0.05
  for signal in $signals; do
    kill -s "$signal" $(cat /proc/$timer/task/$timer/children) 2>/dev/null
    sleep 0.2
  done
  wait $timer
  status=$?
  cat "$output"
  rm "$output"
  exit $status
]]

-- Runs a program, sends it signals once it has printed "ready", and returns { status, stdout }; stdout has
-- stderr too. In the background a shell has SIGINT ignored; as lua5.4, flowlua takes it all the same.
function host.signalled(program, arguments, signals)
  return host.run("bash", { "-c", SIGNALLED, "bash", signals, program, table.unpack(arguments) })
end

local function compare(what, ours, theirs)
  local pattern = host.binary:gsub("%p", "%%%0")
  -- Addresses differ; so does how deep a stack is when it overflows.
  local function comparable(text)
    return (text:gsub("0x%x+", "0x…"):gsub("skipping %d+ levels", "skipping … levels"))
  end
  for _, stream in ipairs { "stdout", "stderr" } do
    ours[stream] = comparable(ours[stream]:gsub(pattern, "lua5.4"))
    theirs[stream] = comparable(theirs[stream])
    check.equal(ours[stream], theirs[stream], ("%s of %s"):format(stream, what))
  end
  check.equal(ours.status, theirs.status, "status of " .. what)
end

-- A script does here what it does in lua5.4: output, messages, traceback and status.
function host.same_script(text, arguments, options)
  compare(("%q"):format(text), host.script(text, arguments, options),
    host.script(text, arguments, options, "lua5.4"))
end

-- So does a command line.
function host.same_arguments(arguments, options)
  compare(table.concat(arguments, " "), host.run(host.binary, arguments, options),
    host.run("lua5.4", arguments, options))
end

-- Runs a script of flowlua in namespaces of its own, which `options` of unshare make, after a line of shell: "$1" is the
-- first argument. Returns { status, stdout, stderr }; where that can't be done, the test is skipped, and it returns nil.
function host.unshared(options, line, script, argument)
  local result = host.run("unshare", {
    options, "sh", "-c", line .. ' || exit 77; exec "$2" "$3" "$1"', "sh", argument, host.binary, script,
  })
  if result.status ~= 77 and not result.stderr:find "^unshare" then return result end
  check.skip "no namespaces here"
end

return host
