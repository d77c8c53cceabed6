-- 1,000 requests at once with 64 descriptors wait for their turn, and succeed.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local host = require "host"
local server <close> = servers.hostile()
local count = os.getenv "FLOWLUA_SANITIZER" and 300 or 1000

local function limited(limit, text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  -- Not with those that the caller of the tests has left open.
  local command = [[
    for held in /proc/$$/fd/*; do
      held=${held##*/}
      if ((held > 2)); then exec {held}>&-; fi
    done
    ulimit -n "$0"
    exec timeout 100 "$@"]]
  local result = host.run("bash", { "-c", command, limit, host.binary, path })
  os.remove(path)
  check.equal(result.stderr, "")
  check.equal(result.status, 0)
  return result.stdout
end

check.equal(limited("64", ([[
  local flow = require "flow"
  local tasks = {}
  for i = 1, %d do tasks[i] = flow.http(%q .. i) end
  local bodies = flow.when_all_succeed(tasks):await()
  for i, res in ipairs(bodies) do assert(res.body == tostring(i), i) end
  print(#bodies)
]]):format(count, server:url "/slow?delay=0.001&body=")), count .. "\n")
check.equal(server:state().most <= 64, true, "connections")

-- In a group of as many items at once, and in groups beside each other.
check.equal(limited("64", ([[
  local flow = require "flow"
  local list = {}
  for i = 1, 200 do list[i] = i end
  local FetchOp = flow.ops.HTTPOp { url = %q, into = "page" }
  local run = flow.new("all"):data { list = list }
    :add_grouped(FetchOp, { input = "list", as = "n", output = "pages", max_concurrent = 200 }):run()
  print(run.ok, run.error, run.data.pages and #run.data.pages)
]]):format(server:url "/reply?body={n}")), "true\tnil\t200\n")

-- Without any: an error, and the script can continue.
check.equal(limited("64", ([[
  local flow = require "flow"
  flow.http(%q):await()
  local held = {}
  repeat held[#held + 1] = io.open("/dev/null") until not io.open("/dev/null")
  local task = flow.http { url = %q, connect_timeout = 5 }
  flow.sleep(0.01)
  for i = 1, 20 do held[i]:close() end
  task:wait()
  print(task.state == "succeeded" or task.error.kind)
  print(flow.http(%q):await().body)
]]):format(server:url "/reply", server:url("/reply", { body = "a" }, "other"), server:url("/reply", { body = "b" })))
  :gsub("^network", "true"), "true\nb\n")
