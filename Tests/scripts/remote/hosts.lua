-- `--hosts` starts a server and nodes for as long as the script runs, and nobody sees the server's token.
-- clock: real: other processes execute the ops
local flow, check, hosts = require "flow", require "check", require "hosts"

local place <close> = hosts.place()

-- Each host is a node of its name, with as many workers as are before it.
local result = place:run(hosts.lanes(3), "--hosts", "1/a,2/b")
check.equal(result.stderr, "")
check.equal(result.stdout, "a/1 b/1 b/2\n")
check.equal(result.status, 0)
-- The script has waited for all processes.
check.same(place:processes(), {})
check.equal(place:left(), "")

-- Secrets may be sent to these nodes, and back.
result = place:run([[
  local Op = flow.op("Op", { needs = { text = "string" }, gives = { token = "string" }, thread = "remote",
    run = function(ctx) ctx:set("token", flow.secret(ctx:get "text" .. "!")) end })
  local run = flow.new("f"):data { text = flow.secret "hush" }:add(Op):run()
  print(run.state, run.error, run.data.token)
]], "--hosts", "1/a")
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\thush!\n")

-- Hosts of a file, and the place of the name in the launcher.
local list = place:write("list", "# nodes\n1/c, 1/user@d # two\n\n")
place:write("other", "#!/bin/sh\nhost=${1#at=}\nshift\nexec " .. place.launcher .. " \"$host\" \"$@\"\n", true)
place:write("skip", "#!/bin/sh\nshift\nexec \"$@\"\n", true)
result = place:run(hosts.lanes(2), "--hosts", "@" .. list,
  "--hosts-launcher", ("'%s/other' at={} %s"):format(place.folder, place.folder .. "/skip {}"))
check.equal(result.stderr, "")
check.equal(result.stdout, "c/1 user@d/1\n")

-- The server and the nodes are outside of the script's sandbox; nodes may have one of their own. The server is at
-- another address of this computer.
result = place:run(hosts.lanes(1), "--hosts", "1/a", "--hosts-address", "127.0.0.2", "--sandbox", "--allow-net",
  "--hosts-command", place.flowlua .. " --sandbox --allow-net")
check.equal(result.stderr, "")
check.equal(result.stdout, "a/1\n")
check.same(place:processes(), {})

-- Messages to such an address are sealed with a key, which nodes get with the URL.
place:write("tee", ([[
#!/bin/sh
tee '%s/line' | '%s' "$@"
]]):format(place.folder, place.flowlua), true)
result = place:run(hosts.lanes(1), "--hosts", "1/a", "--hosts-address", "127.0.0.2", "--hosts-command", place.folder .. "/tee")
check.equal(result.stderr, "")
check.equal(result.stdout, "a/1\n")
check.match(io.open(place.folder .. "/line"):read "a", "^nats://%x+@127%.0%.0%.2:%d+ %x+\n")

-- While the script runs: the token is in no command line, and only the owner can read it in the file of the server.
local running = place:start([[
  local Op = flow.op("PrintOp", { thread = "remote", run = function() print "printed there" end })
  assert(Op:run().state == "succeeded")
  report()
  flow.sleep(3600)
]], "--hosts", "1/a")
place:wait_for_report(running)
local config = flow.exec({ "sh", "-c", ("cat '%s'/*/server.conf; stat -c %%a '%s'/*/server.conf"):format(
  place.temporary, place.temporary) }):await().stdout
local token = config:match 'token: "(%x+)"'
check.equal(#token, 64)
check.contains(config, "host: \"127.0.0.1\"")
check.match(config, "\n600\n$")
local lines = table.concat(place:processes(), "\n")
check.contains(lines, "--join - --name a --workers 1")
check.contains(lines, "server.conf")
for line in flow.exec({ "sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>&- | tr '\\0' '\\n'" },
  { check = false }):await().stdout:gmatch "[^\n]+" do
  assert(not line:find(token, 1, true), line)
end
running:cancel()
local result = select(2, pcall(running.await, running))
check.contains(tostring(result.stderr or running.result and running.result.stderr or ""), "a: printed there")
place:wait_for_end()
