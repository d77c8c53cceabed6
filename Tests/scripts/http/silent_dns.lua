-- A name server that is silent holds up neither a cancel, nor a timeout, nor the end of the script.
-- clock: real: a server is outside
local check, servers = require "check", require "servers"
local host = require "host"

local function run(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local result = host.run("unshare", {
    "--user", "--map-root-user", "--net", "--mount", "python3", "Tests/servers/silent_dns.py", host.binary, path,
  })
  os.remove(path)
  return result
end
if run("").status ~= 0 then return check.skip "no namespaces here" end

local result = run [[
  local flow = require "flow"
  local function timed(what, limit, fn)
    local from = flow.now()
    fn()
    local time = flow.now() - from
    assert(time < limit, what .. " took " .. time)
  end
  local task = flow.http "http://silent.example/"
  flow.sleep(0.1)
  assert(task.state == "pending")
  timed("a cancel", 2, function()
    task:cancel()
    task:wait()
  end)
  assert(task.state == "cancelled")
  timed("a timeout", 3, function()
    task = flow.http { url = "http://silent.example/", timeout = 0.2 }
    task:wait()
  end)
  assert(task.error.kind == "timeout" and task.error.sent == false)
  timed("a limit of connecting", 3, function()
    task = flow.http { url = "http://silent.example/", connect_timeout = 0.2 }
    task:wait()
  end)
  assert(task.error.kind == "timeout" and task.error.phase == "resolve", task.error.phase)
  -- The loop isn't held up.
  local tasks = {}
  for i = 1, 20 do tasks[i] = flow.http(("http://silent%d.example/"):format(i)) end
  timed("a sleep", 3, function() flow.sleep(0.01) end)
  timed("20 cancels", 4, function()
    for _, t in ipairs(tasks) do t:cancel() end
    for _, t in ipairs(tasks) do t:wait() end
  end)
  print "done"
]]
check.equal(result.stderr, "")
check.equal(result.stdout, "done\n")
check.equal(result.status, 0)
-- The end of the program: resolvers that still run don't hold it up.
local from = os.time()
result = run [[
  local flow = require "flow"
  flow.spawn(function() flow.http "http://silent.example/":await() end)
  flow.sleep(0.1)
  os.exit(7, true)
]]
check.equal(result.status, 7)
check.equal(os.time() - from < 9, true, "the end")
