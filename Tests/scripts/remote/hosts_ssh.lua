-- `--hosts` reaches nodes through `ssh` alone: their connections to the server are in its tunnels.
-- clock: real: other processes execute the ops
local flow, check, hosts, remote = require "flow", require "check", require "hosts", require "remote"

local place <close> = hosts.place()

-- A server of ssh for this user; `settings` are further lines of its configuration. Returns its port and process.
local function sshd(name, settings)
  for attempt = 1, 20 do
    local port = math.random(20000, 31999)
    local config = place:write(name, ([[
      ListenAddress 127.0.0.1
      Port %d
      HostKey %s/key
      AuthorizedKeysFile %s/key.pub
      PidFile none
      StrictModes no
      UsePAM no
      PasswordAuthentication no
      PermitRootLogin prohibit-password
      LogLevel INFO
      # The files that a shell reads there are no matter of this test.
      SetEnv HOME=%s
    ]]):format(port, place.folder, place.folder, place.folder) .. settings)
    local task = flow.exec({ "/usr/sbin/sshd", "-D", "-e", "-f", config })
    local lines, text = task:lines(), ""
    for line in lines do
      text = text .. line .. "\n"
      if line:find "Server listening on 127.0.0.1" then
        flow.spawn(function() for _ in lines do end end)
        return port, task
      end
    end
    pcall(task.await, task)
    if attempt == 20 then error(text) end
  end
end

-- Root's needs a folder of this name, which the service of the system makes otherwise.
os.execute "[ $(id -u) != 0 ] || mkdir -p /run/sshd"
flow.exec({ "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place.folder .. "/key" }):await()
local port, server = sshd("sshd.conf", "")
local closed, closed_server = sshd("closed.conf", "AllowTcpForwarding no\n")
local settings = place:write("ssh.conf", ([[
  Host *
    HostName 127.0.0.1
    IdentityFile %s/key
    IdentitiesOnly yes
    UserKnownHostsFile %s/known
    StrictHostKeyChecking accept-new
    LogLevel ERROR
  Host a b
    Port %d
  Host closed
    Port %d
]]):format(place.folder, place.folder, port, closed))
local launcher = "ssh -F " .. settings

-- The processes but the two servers of ssh.
local function wait_for_end()
  local left
  for _ = 1, 3000 do
    left = {}
    for _, line in ipairs(place:processes()) do
      if not line:find "sshd" then left[#left + 1] = line end
    end
    if #left == 0 then return end
    flow.sleep(0.01)
  end
  error("these processes are left:\n" .. table.concat(left, "\n"), 2)
end

local result = place:run(hosts.lanes(3), "--hosts", "2/a,1/b", "--hosts-launcher", launcher)
check.equal(result.stderr, "")
check.equal(result.stdout, "a/1 a/2 b/1\n")
wait_for_end()

-- The option `-F` may be after the host, too, and a port of the host that isn't free is replaced by another one.
place:write("ssh", ([[
#!/bin/sh
echo "$@" >>'%s/tried'
if [ $(wc -l <'%s/tried') = 1 ]; then
  echo 'Error: remote port forwarding failed for listen port 1' >&2
  exit 255
fi
exec /usr/bin/ssh "$@"
]]):format(place.folder, place.folder), true)
result = place:run(hosts.lanes(1), "--hosts", "1/a", "--hosts-launcher", "env A=b " .. place.folder .. "/ssh {} -F " .. settings)
check.equal(result.stderr, "")
check.equal(result.stdout, "a/1\n")
local tried = {}
for line in io.lines(place.folder .. "/tried") do tried[#tried + 1] = line:match "%-R (127%.0%.0%.1:%d+):127%.0%.0%.1:%d+ " end
check.equal(#tried, 2)
assert(tried[1] ~= tried[2], tried[1])

-- Without tunnels, and without a program: the messages of ssh have the name of the host.
local running = place:start(hosts.lanes(1) .. "repeat flow.sleep(0.01) until io.open(arg[0] .. '.enough')",
  "--hosts", "closed,1/b", "--hosts-launcher", launcher)
local reader = place:reader(running)
reader:wait "\nclosed: [^\n]*remote port forwarding failed"
reader:wait "host 'closed' is lost: 'ssh' has ended with status 255\n"
reader:wait "\nb/1\n"
place:write("script.lua.enough", "")
check.equal(running:await().status, 0)
os.remove(place.folder .. "/script.lua.enough")
running = place:start("repeat flow.sleep(0.01) until io.open(arg[0] .. '.enough')",
  "--hosts", "a", "--hosts-launcher", launcher, "--hosts-command", "no-flowlua")
reader = place:reader(running)
reader:wait "\na: [^\n]*no%-flowlua[^\n]*not found\n"
reader:wait "host 'a' has no program 'no%-flowlua'"
place:write("script.lua.enough", "")
check.equal(running:await().status, 0)
wait_for_end()

-- A server of this computer that was there before is reached in the same way, with its token and a key.
do
  local queue <close> = remote.server { config = "authorization { token: 'secret@text' }\n", user = "secret%40text" }
  place.environment = { FLOWLUA_REMOTE = queue.url, FLOWLUA_REMOTE_KEY = "a key of two words, and more" }
  result = place:run(hosts.lanes(1), "--hosts", "1/a", "--hosts-launcher", launcher)
  check.equal(result.stderr, "")
  check.equal(result.stdout, "a/1\n")
  place.environment = nil
end

-- A connection that is cut ends its node, and a killed script ends all.
running = place:start([[
  local Op = flow.op("BeginOp", { thread = "remote", run = function() end })
  Op:run()
  report()
  flow.sleep(3600)
]], "--hosts", "1/a", "--hosts-launcher", launcher)
reader = place:reader(running)
place:wait_for_report(running)
flow.exec({ "pkill", "-KILL", "-f", "^ssh -F " .. settings }):await()
reader:wait "host 'a' is lost: 'ssh' was ended by signal 9"
for _ = 1, 3000 do
  if not table.concat(place:processes(), "\n"):find("--join -", 1, true) then break end
  flow.sleep(0.01)
end
assert(not table.concat(place:processes(), "\n"):find("--join -", 1, true), "the node is still there")
assert(os.execute("kill -KILL " .. running.pid))
pcall(running.await, running)
wait_for_end()
running = place:start([[
  local Op = flow.op("BeginOp", { thread = "remote", run = function() end })
  Op:run()
  report()
  flow.sleep(3600)
]], "--hosts", "1/a,1/b", "--hosts-launcher", launcher)
place:wait_for_report(running)
assert(os.execute("kill -KILL " .. running.pid))
pcall(running.await, running)
wait_for_end()
server:cancel() closed_server:cancel()
pcall(server.await, server) pcall(closed_server.await, closed_server)
