-- Two thousand programs share 256 descriptors: they wait for their turn, and none is lost.
local host, check = require "host", require "check"
local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write [[
  local flow = require "flow"
  local tasks = {}
  for i = 1, 2000 do tasks[i] = flow.exec({ "/bin/echo", i }) end
  local cancelled = flow.exec { "sleep", "100" }
  cancelled:cancel()
  -- The last descriptors are the script's own.
  assert(io.open(arg[0])):close()
  for i, task in ipairs(tasks) do
    local said = task:await().stdout
    assert(said == i .. "\n", said)
  end
  assert(cancelled.cancelled)
  print "all"
]]
file:close()
local result = host.run("sh", { "-c", "ulimit -n 256; exec \"$0\" \"$1\"", host.binary, path })
os.remove(path)
check.equal(result.stderr, "")
check.equal(result.stdout, "all\n")
check.equal(result.status, 0)
