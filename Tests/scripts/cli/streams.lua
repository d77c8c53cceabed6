-- Output that can't be written is an error, and closed streams and pipes do no other harm.
local host = require "host"
local check = require "check"

local function shell(command, chunk)
  return host.run("sh", { "-c", command, "sh", host.binary, chunk })
end

-- Output that can't be written isn't lost silently.
for _, chunk in ipairs { "print(1)", "io.write(('x'):rep(1000000))", "print(1) os.exit(0)",
  "print(1) os.exit(true, true)", "require 'flow' io.write 'x'" } do
  local result = shell('"$1" -e "$2" >/dev/full', chunk)
  check.equal(result.status, 1, chunk)
  check.contains(result.stderr, "can't write to stdout")
  result = shell('"$1" -e "$2" >&-', chunk)
  check.equal(result.status, 1, chunk)
end
check.equal(shell('"$1" -e "$2" >/dev/full', "os.exit(7)").status, 7)
check.equal(shell('"$1" -e "$2" >/dev/full', "print(1) os.exit(7)").status, 7)
-- Without output nothing is lost.
for _, redirection in ipairs { "<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-", ">/dev/full" } do
  check.equal(shell('"$1" -e "$2" ' .. redirection, "require('flow').sleep(0.001)").status, 0)
end
check.equal(shell('"$1" -e "$2" 2>&-', "error 'x'").status, 1)
check.equal(shell('"$1" --help >/dev/full', "").status, 1)
-- No file gets the place of a closed stream.
local result = shell('"$1" -e "$2" >&- <&-',
  "local f = assert(io.open('/dev/null', 'w')) io.stdout:setvbuf 'no' "
  .. "io.stderr:write(tostring(io.write 'x'), ' ', tostring(io.read()))")
check.equal(result.stderr:match("^nil nil"), "nil nil")
result = shell('"$1" -e "$2" | head -n 1; true', "for i = 1, 100000 do print(i) end")
check.equal(result.stdout, "1\n")
check.equal(result.stderr, "")
-- SIGPIPE ends it, as it ends lua5.4.
for _, program in ipairs { host.binary, "lua5.4" } do
  local file = os.tmpname()
  host.run("sh", { "-c", '("$1" -e "for i = 1, 100000 do print(i) end"; echo $? >"$2") | head -n 1',
    "sh", program, file })
  local status = assert(io.open(file)):read("n")
  os.remove(file)
  check.equal(status, 141, program)
end
-- Children begin with the signals that those of lua5.4 begin with.
local states = {}
for i, program in ipairs { host.binary, "lua5.4" } do
  local result = host.run(program, { "-e", "if arg[0]:find 'flowlua' then require('flow').sleep(0.001) end "
    .. "os.execute 'grep -E Sig...: /proc/self/status'" })
  states[i] = result.stdout
end
check.contains(states[1], "SigBlk:", "SigIgn:")
check.equal(states[1], states[2])
