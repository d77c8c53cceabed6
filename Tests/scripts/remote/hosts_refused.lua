-- A host that `--hosts` can't start is an error or a warning that says what is wrong, and where.
-- clock: real: other processes execute the ops
local check, host, hosts = require "check", require "host", require "hosts"

-- Wrong options.
local missing = os.tmpname()
os.remove(missing)
for _, case in ipairs {
  { { "--hosts=" }, "option '%-%-hosts' needs names: %-%-hosts a,b" },
  { { "--hosts", "a,,b" }, "in 'a,,b' one is empty" },
  { { "--hosts", "a,b,a" }, "'a' is named twice" },
  { { "--hosts", "a", "--hosts", "2/a" }, "'a' is named twice" },
  { { "--hosts", "a,-oProxyCommand=x" }, "doesn't begin with '%-', not '%-oProxyCommand=x'" },
  { { "--hosts", "a b" }, "has no spaces" },
  { { "--hosts", "0/a" }, "a number of workers from 1 to 1024 is before the '/', not '0'" },
  { { "--hosts", "2/" }, "the name of a host" },
  { { "--hosts", "@" .. missing }, "can't read '" .. missing .. "': No such file" },
  { { "--hosts", "@/dev/null" }, "'/dev/null' has no names of hosts" },
  { { "--hosts-launcher", "ssh" }, "option '%-%-hosts%-launcher' needs %-%-hosts" },
  { { "--hosts", "a", "--hosts-launcher", "ssh 'x" }, "a quote isn't closed in 'ssh 'x'" },
  { { "--hosts", "a", "--hosts-command", " " }, "needs a program" },
  { { "--hosts", "a", "--hosts-address", "10.0.0.1:4222\"" }, "without a port" },
  { { "--hosts", "a", "--hosts-address", "10.0.0.1" }, "isn't encrypted: use tls://…, or allow it %(%-%-insecure" },
  { { "--hosts", "a", "--hosts-address", "10.0.0.1", "--remote", "nats://127.0.0.1" }, "with %-%-remote there is none" },
  { { "--hosts", "a", "--join", "nats://127.0.0.1" }, "'%-%-join' can't be combined with '%-%-hosts'" },
  { { "--hosts", "a", "--remote", "nats://127.0.0.1", "--remote-check" }, "'%-%-remote%-check' can't be combined" },
} do
  local result = host.script("", {}, { before = case[1] })
  check.equal(result.status, 2, case[2])
  check.match(result.stderr, case[2])
end

-- The first line of standard input has the URL.
for _, case in ipairs {
  { "", 2, "reads the URL of the server from the first line of standard input, which has ended before" },
  { "nats://127.0.0.1:1", 2, "which has ended before" },
  { "x\n", 2, "option '%-%-join %-': 'x' isn't the URL" },
  { "nats://example.com short\n", 2, "isn't encrypted" },
  { "nats://127.0.0.1:1 short\n", 2, "FLOWLUA_REMOTE_KEY" },
} do
  local result = host.run("sh", { "-c", 'cat | "$0" --join -', host.binary }, { stdin = case[1] })
  check.equal(result.status, case[2], case[1])
  check.match(result.stderr, case[3])
end

local place <close> = hosts.place()
local op = [[
  local Op = flow.op("Op", { thread = "remote", gives = { lane = "string" }, run = function(ctx) ctx:set("lane", ctx.lane) end })
  local run = flow.new("f"):add(Op):run()
  print(run.state, run.error and run.error.message or run.data.lane)
]]

-- The server or the launcher isn't there: the script isn't executed.
local result = place:run("print 'executed'", "--hosts", "a", "--hosts-launcher", "no-launcher")
check.equal(result.status, 1)
check.equal(result.stdout, "")
check.contains(result.stderr, "option '--hosts': can't run 'no-launcher': no such program on the PATH")
check.same(place:processes(), {})
place:write("bin/nats-server", "#!/bin/sh\necho 'port of mine' >&2; exit 7\n", true)
place.environment = { PATH = place.folder .. "/bin:/usr/bin:/bin" }
result = place:run("print 'executed'", "--hosts", "a")
check.equal(result.status, 1)
check.equal(result.stdout, "")
check.contains(result.stderr, "the server of '--hosts' doesn't run: it has ended with status 7: port of mine")
place.environment = nil
check.same(place:processes(), {})

-- Some hosts fail: their messages have their names, and the script executes with the others.
place:write("mixed", [[
#!/bin/sh
case $1 in
  gone) echo 'connection refused' >&2; exit 255 ;;
  bare) shift; shift; exec no-flowlua "$@" ;;
  quiet) exit 0 ;;
  *) shift; exec "$@" ;;
esac
]], true)
local running = place:start(op .. "repeat flow.sleep(0.01) until io.open(arg[0] .. '.enough')",
  "--hosts", "gone,bare,quiet,1/good", "--hosts-launcher", place.folder .. "/mixed")
local reader = place:reader(running)
reader:wait "\ngone: connection refused\n"
reader:wait "flowlua: host 'gone' is lost: '[^']+/mixed' has ended with status 255\n"
reader:wait "\nbare: [^\n]*no%-flowlua: not found\n"
reader:wait "flowlua: host 'bare' has no program '[^']+/flowlua': install it there, or name it with %-%-hosts%-command\n"
reader:wait "flowlua: host 'quiet' has left\n"
place:write("script.lua.enough", "")
reader:wait "\nsucceeded\tgood/1\n"
check.equal(running:await().status, 0)

-- All of them fail: no op waits for a node that can't come.
result = place:run(op, "--hosts", "gone,quiet", "--hosts-launcher", place.folder .. "/mixed", "--remote-timeout", "86400")
local sentence = "no host of '%-%-hosts' is left: 'gone' is lost: '[^']+/mixed' has ended with status 255; 'quiet' has left"
check.match(result.stderr, "flowlua: " .. sentence .. "\n")
check.match(result.stdout, "^failed\t.*no node that has joined nats://127.0.0.1:%d+ executes it: " .. sentence .. "\n")

-- Nodes of another version are refused, as others are. Nothing is started for what executes no op.
result = place:run("flow.new 'f':run()", "--hosts", "a", "--check", "--hosts-launcher", "no-launcher")
check.equal(result.status, 0)
check.equal(result.stderr, "")

-- The script can't name another server, which the nodes haven't joined.
result = place:run("flow.remote { url = 'nats://127.0.0.1' }", "--hosts", "1/a")
check.equal(result.status, 1)
check.contains(result.stderr, "bad use of 'remote' (the nodes of --hosts have joined another server)")
place:wait_for_end()
