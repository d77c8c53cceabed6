-- A signal ends a script also while nobody reads its stdout and stderr: its cleanups run, and what can't be written is dropped.
-- clock: real: a process waits for a second until it drops what nobody reads
local host, check = require "host", require "check"
local flow = require "flow"
local fs = flow.fs

local folder = fs.temp_dir()
local function path(name) return folder .. "/" .. name end
fs.write(path "nothing", "")

-- Sends a signal to a script whose pipe is full, once it has written "ready" to the file of its first argument; returns
-- its status, and what the file has at the end.
local function stuck(signal, text)
  fs.write(path "script.lua", [[
    local file = assert(io.open(arg[1], "w"))
    file:setvbuf "no"
    local function note(line) file:write(line, "\n") end
  ]] .. text)
  fs.write(path "notes", "")
  local result = flow.exec({ "sh", "-c", [[
    rm -f pipe; mkfifo pipe; exec 3<>pipe
    head -c 65536 /dev/zero >&3
    "$1" script.lua notes >pipe 2>&1 3<&- & process=$!
    until grep -q ready notes; do kill -0 $process || exit 99; sleep 0.01; done
    kill -$2 $process
    wait $process
  ]], "sh", host.binary, signal }, { cwd = folder, check = false }):await()
  return result.status, fs.read(path "notes")
end

local op = [[
  local flow = require "flow"
  local run = flow.op("PrintOp", function(ctx)
    ctx:defer(function() print "in a cleanup" io.stderr:write "so" note "cleaned" end)
    note "ready"
    for i = 1, 1e6 do print(i) end
  end):run()
  print(run.error)
  note "after"
]]
for signal, status in pairs { TERM = 143, HUP = 129 } do
  local ended, notes = stuck(signal, op)
  check.equal(ended, status)
  check.equal(notes, "ready\ncleaned\n")
end
local status, notes = stuck("INT", op)
check.equal(status, 1)
check.equal(notes, "ready\ncleaned\nafter\n")

-- Lines of workers, and of a script that waits.
status, notes = stuck("TERM", [[
  local flow = require "flow"
  local PrintOp = flow.op("PrintOp", { thread = "worker", run = function() for i = 1, 1e6 do print(i) end end })
  flow.op("WaitOp", function(ctx)
    ctx:defer(function() print "in a cleanup" note "cleaned" end)
    flow.new("workers"):add_grouped(PrintOp, { input = "list", as = "x" }):start { list = { 1, 2 } }
    flow.sleep(0.1)
    note "ready"
    flow.sleep(100)
  end):run()
]])
check.equal(status, 143)
check.equal(notes, "ready\ncleaned\n")

-- Without runs, and outside of Lua: an error that nobody reads.
status, notes = stuck("INT", [[note "ready" for i = 1, 1e6 do io.stderr:write(i, "\n") end]])
check.equal(status, 1)
check.equal(notes, "ready\n")
status = stuck("INT", [[note "ready" while true do end]])
check.equal(status, 1)
