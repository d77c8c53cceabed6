-- With FLOWLUA_REMOTE_KEY all that travels is sealed: others can't read or make it, and another key is refused.
-- clock: real: other processes execute the ops
local check = require "check"
local flow = require "flow"
local host = require "host"
local remote = require "remote"

local server <close> = remote.server()
local folder = server.folder .. "/store/jetstream/$G/streams/"

local function lines(command)
  local pipe = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end
local function is_stored(text)
  return #lines(("grep -rlaF -e '%s' '%s'"):format(text, server.folder .. "/store")) > 0
end
-- The end of the only path of this pattern.
local function stored_name(pattern)
  local found = lines(("ls -d %s"):format(pattern))
  check.equal(#found, 1, pattern)
  return (found[1]:match "[^/]+$")
end

-- The code stays on the server, so that it shows how things are stored.
local op = [[
  local Op = flow.op("Op", {
    needs = { text = "string", token = "string" }, gives = { back = "string", count = "integer" }, thread = "remote",
    run = function(ctx)
      assert(ctx:get "token" == "hush" and not os.getenv "FLOWLUA_REMOTE_KEY")
      assert(flow.exec { "sh", "-c", "echo ${FLOWLUA_REMOTE_KEY-none}" }:await().stdout == "none\n")
      ctx:set("count", #"%s")
      ctx:set("back", ctx:get "text" .. "!")
    end,
  })
  assert(not os.getenv "FLOWLUA_REMOTE_KEY")
  local text = ("text of the script "):rep(%d)
  local run = flow.new("f"):data { text = text, token = flow.secret "hush" }:add(Op):run()
  print(run.state, run.error and run.error.message, run.data.back == text .. "!")
]]
local succeeds = "succeeded\tnil\ttrue\n"

-- Without a key, everybody finds the code there. Secrets aren't sent: other nodes may have joined without encryption.
server:join "open"
local plain = op:gsub('flow.secret "hush"', '"hush"')
check.equal(server:run(plain:format("written in the open", 1)).stdout, succeeds)
check.equal(is_stored "written in the open", true)
check.match(server:run(op:format("x", 1)).stdout, "a secret isn't sent without encryption, since others might read it")
-- Nor are those of an op, which ends with that; in texts they are replaced.
local gives = server:run [[
  local Op = flow.op("Op", { needs = { fails = "boolean" }, gives = { token = "string" }, thread = "remote",
    run = function(ctx)
      local word = ("xyz"):rep(5)
      local token = flow.secret(word)
      ctx:log("logs " .. word)
      flow.exec({ "true", word }):await()
      if ctx:get "fails" then error { message = "fails with " .. word, field = word } end
      ctx:set("token", token)
      flow.sleep(3600)
    end })
  for _, fails in ipairs { false, true } do
    local run = flow.new("f"):data { fails = fails }:add(Op):run()
    print(run.state, run.error.kind, run.error.message, run.error.field, run.data.token)
    for _, event in ipairs(run:events()) do
      if event.kind == "log" then print(event.message) end
      for name, value in pairs(event) do assert(not tostring(value):find(("xyz"):rep(5), 1, true), name) end
    end
  end
]]
check.equal(gives.stderr, "")
check.match(gives.stdout, "^failed\tusage\ta secret isn't sent without encryption, [^\n]*FLOWLUA_REMOTE_KEY\tnil\tnil\n"
  .. "logs <redacted>\nfailed\terror\t[^\n]*fails with <redacted>\tnil\tnil\nlogs <redacted>\n$")
check.equal(is_stored(("xyz"):rep(5)), false)

-- With it nobody does. Large values travel as well.
server.environment = { FLOWLUA_REMOTE_KEY = "a key of enough bytes" }
local node = server:join "closed"
local compatibility, key = stored_name("'" .. folder .. "FLOWLUA_WORK/obs/'*-" .. ("?"):rep(16) .. "-+any")
  :match "^(.*)%-(%x+)%-%+any$"
local version, lua = compatibility:match "^%d+%-(.+)%-([^-]+)$"
for _, size in ipairs { 1, 100000 } do
  local result = server:run(op:format("written in private", size))
  check.equal(result.stdout, succeeds)
  check.contains(result.stderr, "open can't execute ops of this script: it has no FLOWLUA_REMOTE_KEY")
end
check.equal(is_stored "written in private", false)

-- 0.0.0.0 counts as another computer. The key lets secrets travel, but the token of the server isn't protected.
local url = server.url
server.url = url:gsub("127.0.0.1", "0.0.0.0")
check.match(server:run(op:format("x", 1)).stderr, "the connection isn't encrypted: use tls")
check.equal(server:run(op:format("x", 1), "--insecure").stdout, succeeds)
server.environment = nil
check.match(server:run(op:format("x", 1), "--insecure").stdout, "a secret isn't sent without encryption")
server.url = url

-- Another key, and none.
local function checked()
  return host.run(host.binary, { "--remote", server.url, "--remote-check" }, { environment = server.environment })
end
check.match(checked().stdout, "^closed: [^\n]*: refused, it has a FLOWLUA_REMOTE_KEY, and here is none; this is [^\n]*\nopen: ")
server.nodes[1]:signal "TERM"
server.nodes[1]:wait()
local result = server:run(plain:format("x", 1), "--remote-timeout", "0.5")
check.contains(result.stderr, "closed can't execute ops of this script: it has a FLOWLUA_REMOTE_KEY, and here is none")
check.match(result.stdout, "no node that has joined .*; closed: it has a FLOWLUA_REMOTE_KEY, and here is none %(waited 0.5s")
server.environment = { FLOWLUA_REMOTE_KEY = "another key of enough bytes" }
result = server:run(op:format("x", 1), "--remote-timeout", "0.5")
check.contains(result.stderr, "closed can't execute ops of this script: it has another FLOWLUA_REMOTE_KEY")
check.match(result.stdout, "; closed: it has another FLOWLUA_REMOTE_KEY %(waited 0.5s")
check.equal(result.stderr:find("enough", 1, true), nil)
check.equal(checked().status, 1)
check.match(checked().stdout, "^closed: [^\n]*: refused, it has another FLOWLUA_REMOTE_KEY; this is ")
server.environment = { FLOWLUA_REMOTE_KEY = "short" }
result = server:run(op:format("x", 1))
check.equal(result.status, 2)
check.contains(result.stderr, "FLOWLUA_REMOTE_KEY has 5 bytes; at least 16 are needed")

-- Others who may publish change nothing, and are noticed.
server.environment = { FLOWLUA_REMOTE_KEY = "a key of enough bytes" }
local running = server:start [[
  local Op = flow.op("Op", { thread = "remote", gives = { r = "integer" }, run = function(ctx)
    ctx:log "began"
    require "flow".sleep(2)
    ctx:set("r", 1)
  end })
  local run = flow.new("f"):add(Op):start()
  local function began()
    for _, event in ipairs(run:events()) do if event.kind == "log" then return true end end
  end
  while not began() do flow.sleep(0.001) end
  report()
  run:await()
  print(run.state, run.data.r)
]]
server:wait_for_report()
local script = stored_name("'" .. folder .. "FLOWLUA_NEWS/obs/'script-*"):match "%-(.*)$"
for _, subject in ipairs {
  "flowlua.news." .. script, "flowlua.begun." .. script, "flowlua.ask." .. script,
  "flowlua.stop." .. compatibility .. "-" .. key .. "." .. script,
  "flowlua.work." .. compatibility .. "-" .. key .. ".+any." .. script,
} do
  server:publish(subject, "\0\2\1\1")
  server:publish(subject, "\0\2\1\1")
end
server:publish("flowlua.here",
  string.pack("s1s1s1s1s1", "id7", "liar", compatibility, version, lua) .. "\4\4\0\0" ..
  string.pack("s1", key) .. ("x"):rep(32))
result = running:await()
check.equal(result.stdout, "succeeded\t1\n")
for _, subject in ipairs { "flowlua.news." .. script, "flowlua.begun." .. script, "flowlua.here" } do
  local text = "a message with the subject '" .. subject .. "' isn't sealed with this FLOWLUA_REMOTE_KEY: it is ignored"
  local at = result.stderr:find(text, 1, true)
  check.equal(at ~= nil, true, subject .. "\n" .. result.stderr)
  check.equal(result.stderr:find(text, at + 1, true), nil)
end
local function said() return table.concat(node.output, "\n") end
local text = "a message with the subject 'flowlua.work." .. compatibility
while not said():find(text, 1, true) do flow.sleep(0.01) end
check.contains(said(), "a message with the subject 'flowlua.stop." .. compatibility .. "-" .. key .. "." .. script)

-- The variable has the URL for a node, too.
server.environment.FLOWLUA_REMOTE = server.url
server.url = nil
check.equal(server:join("third"):signal "TERM", nil)
