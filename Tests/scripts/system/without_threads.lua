-- Without threads timeouts work, files are read and written, and workers are an error.
-- The system refuses threads to this process.
local host, check = require "host", require "check"
local program = [[
  local flow = require "flow"
  local function kind(body)
    return flow.op("BusyOp", { timeout = 0.02, run = body }):run().error.kind
  end
  print(kind(function() while true do end end))
  print(kind(function() while true do pcall(function() while true do end end) end end))
  print(kind(function() coroutine.wrap(function() while true do end end)() end))
  print(flow.op("OuterOp", { timeout = 0.02, run = function()
    flow.op("InnerOp", function() while true do end end):run()
  end }):run().error.kind)
  -- One that ends in time leaves no timer that stops another.
  assert(flow.op("ShortOp", { timeout = 0.2, run = function() end }):run().ok)
  local from = os.clock()
  while os.clock() - from < 0.3 do end
  print(flow.ops.ReadFileOp:run { path = "/dev/null" }.data.content == "")
  print(flow.op("WorkOp", { thread = "worker", run = function() end }):run().error)
]]
-- A limit on processes doesn't hold for root.
local command = {
  "-c", [[
    limit="prlimit --nproc=0:0"
    if [ "$(id -u)" = 0 ]; then limit="setpriv --reuid=65534 --regid=65534 --clear-groups $limit"; fi
    # Skipped: somebody without rights can't read the program.
    $limit "$0" -v >/dev/null 2>&1 || { echo skipped; exit 0; }
    exec timeout 100 $limit "$0" -e "$1"]], host.binary, program,
}
local result = host.run("sh", command)
if result.stdout == "skipped\n" then return check.skip "somebody without rights can't read the program" end
check.equal(result.stderr, "")
check.equal(result.stdout, [[
timeout
timeout
timeout
timeout
true
[WorkOp] no worker could be made: the system gives no thread
]])
check.equal(result.status, 0)

-- The only thread waits for the writer of a pipe when the system begins to refuse threads.
local unlimited = command[2]:gsub("prlimit %-%-nproc=0:0", "env")
result = host.run("sh", { "-c", unlimited, host.binary, [[
  local flow = require "flow"
  local pipe = os.tmpname()
  os.execute("rm " .. pipe .. " && mkfifo " .. pipe)
  local reader = flow.ops.ReadFileOp:start { path = pipe }
  local writer = io.open(pipe, "w")
  os.remove(pipe)
  assert(os.execute "prlimit --pid $PPID --nproc=0:0")
  print(flow.ops.ReadFileOp:run { path = "/dev/null" }.data.content == "")
  writer:write "written"
  writer:close()
  reader:wait()
  print(reader.data.content)
]] })
check.equal(result.stderr, "")
check.equal(result.stdout, "true\nwritten\n")

-- Where there is no timer either, an op with a timeout is rather not begun.
command[2] = command[2]:gsub("nproc=0:0", "%0 --sigpending=0:0")
command[4] = [[
  local flow = require "flow"
  local op = flow.op("BusyOp", { timeout = 0.02, run = function() while true do end end })
  print(op:run().error, flow.op("AnyOp", function() end):run().ok)
]]
result = host.run("sh", command)
check.equal(result.stderr, "")
check.equal(result.stdout, "[BusyOp] not enough memory\ttrue\n")
