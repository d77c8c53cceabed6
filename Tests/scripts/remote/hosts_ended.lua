-- However a script with `--hosts` ends, no process is left, here or on the hosts.
-- clock: real: other processes execute the ops
local flow, check, hosts = require "flow", require "check", require "hosts"

local place <close> = hosts.place()
local text = [[
  local Op = flow.op("LongOp", { thread = "remote", run = function(ctx)
    require "flow".exec({ "sh", "-c", "sleep 3600; :", %q }):await()
  end })
  local BeginOp = flow.op("BeginOp", { thread = "remote", run = function() end })
  BeginOp:run()
  Op:start()
  repeat
    flow.sleep(0.01)
  until flow.exec({ "pgrep", "-f", "sleep 3600; : " .. %q }, { check = false }):await().stdout ~= ""
  report()
  %s
]]
local function script(rest) return text:format(place.folder .. "/job", place.folder .. "/job", rest) end

-- Signals, also one that leaves it no time.
for _, signal in ipairs { "INT", "TERM", "HUP", "KILL" } do
  local running = place:start(script "flow.sleep(3600)", "--hosts", "1/a,1/b")
  place:wait_for_report(running)
  check.match(table.concat(place:processes(), "\n"), "nats%-server")
  assert(os.execute(("kill -%s %d"):format(signal, running.pid)))
  pcall(running.await, running)
  -- Otherwise nobody was left to wait for them.
  if signal ~= "KILL" then check.same(place:processes(), {}, signal) end
  place:wait_for_end()
  check.equal(place:left(), "", signal)
end

-- A script that ends by itself, with an error or by os.exit, has waited for all of them.
for _, rest in ipairs { "os.exit(3)", "error 'wrong'" } do
  local running = place:start(script(rest), "--hosts", "1/a,1/b")
  local result = running:await()
  check.equal(result.status, rest:find "exit" and 3 or 1)
  check.same(place:processes(), {}, rest)
end

-- So has one without an op, while its nodes still start.
check.equal(place:run("print 'done'", "--hosts", "1/a,1/b").stdout, "done\n")
check.same(place:processes(), {})

-- A node or its launcher that is killed: the script says so, and continues with the others.
local running = place:start(hosts.lanes(2) .. [[
  report()
  repeat flow.sleep(0.01) until io.open(arg[0] .. ".lost")
]] .. hosts.lanes(1), "--hosts", "1/a,1/b")
local reader = place:reader(running)
place:wait_for_report(running)
flow.exec({ "pkill", "-KILL", "-f", place.folder .. "/flowlua --join - --name a" }):await()
reader:wait "host 'a' is lost: '[^']+' was ended by signal 9"
place:write("script.lua.lost", "")
reader:wait "\na/1 b/1\n.*\nb/1\n"
check.equal(running:await().status, 0)
check.same(place:processes(), {})
