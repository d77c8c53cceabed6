-- Wrong uses of remote ops and servers that can't serve them are errors that say what is wrong.
-- clock: real: other processes execute the ops
local check = require "check"
local host = require "host"
local remote = require "remote"

local op = [[
  local Op = flow.op("Op", { thread = "remote", gives = { r = "integer" }, run = function(ctx) ctx:set("r", 1) end })
  local run = flow.new("f"):add(Op):run()
  print(run.state, run.error and run.error.message)
]]

local function without_server(options, text)
  return host.script("local flow = require 'flow'\n" .. (text or op), {}, { before = options })
end

-- No server is named, or none is there.
check.match(without_server({}).stdout, "no server of NATS is known for thread = \"remote\": flowlua %-%-remote nats://HOST")
check.match(without_server({ "--remote", "nats://127.0.0.1:1" }).stdout, "127.0.0.1:1: ")

-- Wrong options.
for _, case in ipairs {
  { { "--remote", "http://x" }, "'http://x' isn't the URL of a NATS server" },
  { { "--remote", "nats://example.com" }, "another computer, and the connection isn't encrypted: use tls" },
  { { "--remote=" }, "option '%-%-remote' needs a URL" },
  { { "--remote-timeout", "0", "--remote", "nats://127.0.0.1" }, "needs a number of seconds greater than 0, not '0'" },
  { { "--tags", "gpu" }, "option '%-%-tags' needs %-%-join" },
  { { "--join", "nats://127.0.0.1", "--remote", "nats://127.0.0.1" }, "can't be combined" },
  { { "--join", "nats://127.0.0.1" }, "executes no script" },
} do
  local result = without_server(case[1])
  check.equal(result.status, 2, case[2])
  check.match(result.stderr, case[2])
end
for _, case in ipairs {
  { { "--join", "nats://127.0.0.1:1" }, 1, "127.0.0.1:1" },
  { { "--join", "nats://example.com" }, 2, "isn't encrypted" },
  { { "--join", "nats://127.0.0.1", "--name", "a/b" }, 2, "without spaces and '/'" },
  { { "--remote-check" }, 2, "needs %-%-remote URL" },
  { { "--join" }, 2, "option '%-%-join' needs a URL: %-%-join nats://HOST, or the variable FLOWLUA_REMOTE" },
  { { "--join", "--name", "m1" }, 2, "FLOWLUA_REMOTE" },
  { { "--join=" }, 2, "FLOWLUA_REMOTE" },
} do
  local result = host.run(host.binary, case[1])
  check.equal(result.status, case[2], case[3])
  check.match(result.stderr, case[3])
end

-- Wrong arguments.
for _, case in ipairs {
  { "flow.op('Op', { thread = 'elsewhere', run = print })", 'field \'thread\': "main", "worker" or "remote" expected, got "elsewhere"' },
  { "flow.op('Op', { tags = 'gpu', run = print })", "field 'tags': only an op with thread = \"remote\" can have them" },
  { "flow.op('Op', { thread = 'remote', tags = 'a b c d e', run = function() end })", "at most 4 tags expected, got 5" },
  { "flow.op('Op', { thread = 'remote', tags = 'a.b', run = function() end })", "not 'a.b'" },
  { "flow.op('Op', { thread = 'remote', tags = 7, run = function() end })",
    "field 'tags': string or list of strings expected, got number" },
  { "flow.remote()", "bad argument #1 to 'remote'" },
  { "flow.remote { url = 'x' }", "field 'url': 'x' isn't the URL of a NATS server" },
  { "flow.remote { url = 'nats://127.0.0.1', timeout = 0 }", "field 'timeout'" },
} do
  local result = without_server({}, case[1])
  check.equal(result.status, 1, case[1])
  check.contains(result.stderr, case[2])
end

do
  -- A server without JetStream, and a wrong token.
  local server <close> = remote.server { plain = true }
  check.match(server:run(op).stdout, "has no JetStream: start it with `nats%-server %-js`")
end
do
  local server <close> = remote.server { config = "authorization { token: 'right' }\n", user = "wrong" }
  check.match(server:run(op).stdout, "Authorization Violation")
  server.url = server.url:gsub("wrong", "right")
  server:join "m1"
  check.equal(server:run(op).stdout, "succeeded\tnil\n")
end

-- No node, and none with the tags.
do
  local server <close> = remote.server()
  check.match(server:run(op, "--remote-timeout", "0.5").stdout, "no node that has joined nats://127.0.0.1:%d+ executes it %(waited 0.5s")
  server:join("m1", "--tags", "cpu")
  local tagged = op:gsub("gives", "tags = 'gpu', gives")
  check.match(server:run(tagged, "--remote-timeout", "1").stdout, "none has the tags 'gpu'; m1 has the tags 'cpu' %(waited 1s")
  -- The options are the defaults of flow.remote.
  check.match(without_server({ "--remote-timeout", "0.5" }, ("flow.remote { url = %q }\n"):format(server.url) .. tagged).stdout,
    "none has the tags 'gpu'; m1 has the tags 'cpu' %(waited 0.5s")
  server:join("m2", "--tags", "big,gpu", "--workers", "1")
  check.equal(server:run(tagged).stdout, "succeeded\tnil\n")
  local listed = host.run(host.binary, { "--remote", server.url, "--remote-check" })
  check.equal(listed.status, 0)
  check.match(listed.stdout,
    "^m1: 2 workers, %d+ cores, flowlua %S+, Lua 5%.4%.%d+, [%d.]+ %S+, tags cpu\nm2: 1 worker, .*, tags big gpu\n$")
  -- At most five nodes are named.
  for k = 1, 5 do server:join("n" .. k) end
  check.match(server:run(op:gsub("gives", "tags = 'fast', gives"), "--remote-timeout", "0.5").stdout,
    "none has the tags 'fast'; m1 has the tags 'cpu'; m2 has the tags 'big gpu'; n1 has no tags; n2 has no tags; " ..
    "n3 has no tags; 2 more %(waited 0.5s")
end
