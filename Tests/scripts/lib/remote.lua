-- A server of NATS and nodes that have joined it: processes of this test, which end with it.
--
--   local server <close> = remote.server()
--   local node = server:join("m1")
--   local result = server:run [[ print(flow…) ]]
--
-- With `network` (lib/network.lua) the server, the script and each node have a place in it, by the names "queue",
-- "script" and the node's own.
local flow = require "flow"
local host = require "host"
local servers = require "servers"

local remote = {}
local Server, Node = {}, {}
Server.__index, Node.__index = Server, Node

-- In one line, so that lines of errors are those of the script's text.
local FINISHED = [[
local function finished(run)
  local count = 0
  for _, event in ipairs(run:events()) do if event.kind == "finish" and event.index > 0 then count = count + 1 end end
  return count
end]]
FINISHED = FINISHED:gsub("\n *", " ")

local function quoted(text) return "'" .. tostring(text):gsub("'", [['\'']]) .. "'" end

local function joined(...)
  local all = {}
  for _, list in ipairs { ... } do table.move(list, 1, #list, #all + 1, all) end
  return all
end

-- Starts a program whose output, of both kinds, is read line by line; returns it when a line has this text.
-- options: those of flow.exec.
local function start(words, ready, options)
  local parts = {}
  for k, word in ipairs(words) do parts[k] = quoted(word) end
  local program = flow.exec({ "sh", "-c", "exec " .. table.concat(parts, " ") .. " 2>&1" },
    { cwd = options and options.cwd, env = options and options.env })
  local self = { program = program, output = {} }
  local lines = program:lines()
  for line in lines do
    self.output[#self.output + 1] = line
    if line:find(ready, 1, true) then
      -- Otherwise the program would wait for its reader.
      flow.spawn(function()
        for more in lines do self.output[#self.output + 1] = more end
      end)
      return self
    end
  end
  -- Its failure is reported here, and not at the end of the test as well, which may try again.
  pcall(program.await, program)
  error(table.concat(words, " ") .. ":\n" .. table.concat(self.output, "\n"), 2)
end

local function stop(program) program:cancel() pcall(program.await, program) end

-- Publishes bytes without a client of NATS.
function Server:publish(subject, bytes)
  local script = ([[exec 3<>/dev/tcp/127.0.0.1/%d; printf 'CONNECT {}\r\nPUB %s %d\r\n' >&3; printf '%s\r\n' >&3; ]] ..
    [[printf 'PING\r\n' >&3; while read -r line <&3; do case $line in PONG*) break; esac; done]]):format(
    self.port, subject, #bytes, (bytes:gsub(".", function(c) return ("\\x%02x"):format(c:byte()) end)))
  assert(os.execute("bash -c '" .. script:gsub("'", [['\'']]) .. "'"))
end

-- Asks the server something without a client of NATS; returns the reply.
function Server:request(subject)
  local script = ([[exec 3<>/dev/tcp/127.0.0.1/%d; printf 'CONNECT {}\r\nSUB reply 1\r\nPUB %s reply 0\r\n\r\n' >&3; ]] ..
    [[while read -r -t 30 line <&3; do case $line in MSG*) read -r line <&3; printf %%s "$line"; break; esac; done]]):format(
    self.port, subject)
  local pipe <close> = assert(io.popen("bash -c '" .. script:gsub("'", [['\'']]) .. "'"))
  return pipe:read "a"
end

-- The words that begin a program at a place of the server's network, if it has one.
function Server:at(place) return self.network and self.network:words(place) or {} end

local PORTS = [=[
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(each.getsockname()[1] for each in sockets))]=]

-- Ports that the system names, for servers that have to know those of others before they start.
function remote.free_ports(count)
  local ports = {}
  local named = flow.exec { "python3", "-c", PORTS, count }:await().stdout
  for port in named:gmatch "%d+" do ports[#ports + 1] = math.tointeger(tonumber(port)) end
  return ports
end

-- Starts a server with JetStream. options: port, folder (of an earlier server), config (lines), plain (no JetStream),
-- network.
function remote.server(options)
  options = options or {}
  local self = setmetatable({ nodes = {}, network = options.network }, Server)
  local address = self.network and self.network.addresses.queue or "127.0.0.1"
  -- Options of flowlua for nodes and scripts.
  self.options = self.network and { "--insecure" } or {}
  self.folder = options.folder or servers.folder()
  local file = assert(io.open(self.folder .. "/server.conf", "w"))
  file:write(options.config or "")
  file:close()
  for attempt = 1, 20 do
    self.port = options.port or math.random(20000, 31999)
    self.words = joined(self:at "queue", {
      "nats-server", "-a", address, "-p", self.port, "-c", self.folder .. "/server.conf",
    }, options.plain and {} or { "-js", "-sd", self.folder .. "/store" })
    local ok, started = pcall(start, self.words, "Server is ready")
    if ok then
      self.server = started
      break
    end
    if attempt == 20 or options.port then error(started, 2) end
  end
  self.url = "nats://" .. (options.user and options.user .. "@" or "") .. address .. ":" .. self.port
  return self
end

function Server:__close()
  for _, node in ipairs(self.nodes) do stop(node.program) end
  stop(self.server.program)
  getmetatable(self.folder).__close(self.folder)
end

-- Sends a signal to the server: "STOP", "CONT".
function Server:signal(name) assert(os.execute(("kill -%s %d"):format(name, self.server.program.pid))) end

-- Ends the server, at once or by another signal, and starts it again on the same files and port.
function Server:kill(name) self:signal(name or "KILL") pcall(self.server.program.await, self.server.program) end
function Server:restart()
  for _ = 1, 100 do
    local ok, started = pcall(start, self.words, "Server is ready")
    if ok then
      self.server = started
      return
    end
    -- A socket of the killed one, or another test's server, may still have the port.
    if not tostring(started):find("address already in use", 1, true) then error(started, 2) end
    flow.sleep(0.1)
  end
  error("the port isn't free", 2)
end

-- The program for a process with another working folder.
local function binary()
  if host.binary:find "^/" then return host.binary end
  local pipe <close> = io.popen "pwd"
  return pipe:read "l" .. "/" .. host.binary
end

-- Starts a node. Further words are options of flowlua. The name may be in a table: name, cwd, env, before (the words
-- of a program that executes it). The server's field `environment` has variables for it, and for scripts; the URL comes
-- from there if the field `url` is nil.
function Server:join(name, ...)
  local options = type(name) == "table" and name or { name = name, env = self.environment }
  name = options.name
  local words = joined(self:at(name), options.before or {},
    { binary(), "--join", self.url or "--name=" .. name, "--name", name, "--workers", "2" }, self.options, { ... })
  local node = setmetatable(start(words, "joined", options), Node)
  node.name = name
  self.nodes[#self.nodes + 1] = node
  return node
end

-- Sends a signal to a node: "KILL", "STOP", "CONT", "TERM".
function Node:signal(name) assert(os.execute(("kill -%s %d 2>&-"):format(name, self.program.pid))) end

-- Waits until a node has printed a line with this text in it.
function Node:wait_for_line(text)
  for _ = 1, 6000 do
    if table.concat(self.output, "\n"):find(text, 1, true) then return end
    flow.sleep(0.01)
  end
  error(("no '%s' in:\n%s"):format(text, table.concat(self.output, "\n")), 2)
end

-- Waits for the end of a node; returns its status.
function Node:wait()
  local ok, result = pcall(self.program.await, self.program)
  return ok and result.status or result.status
end

-- Runs a text as a script of this server; further words are options of flowlua. Returns { status, stdout, stderr }.
function Server:run(text, ...) return self:start(text, ...):await() end

-- Waits until a script has called `report()`, and forgets that. One that ends before, if it's given, is an error.
function Server:wait_for_report(script)
  local path = self.folder .. "/reported"
  for _ = 1, 6000 do
    local file = io.open(path)
    if file then
      file:close()
      os.remove(path)
      return
    end
    if script and script.state ~= "pending" then
      local result = script:await()
      error("the script ended: " .. result.stdout .. result.stderr, 2)
    end
    flow.sleep(0.01)
  end
  error("no script has reported", 2)
end

-- Starts it, in the folder `self.cwd` if that is set; returns its task. It has `report()`, for `wait_for_report`, and
-- `finished(run)`: how many items of a run's groups have finished.
function Server:start(text, ...)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write("local flow = require 'flow'\n",
    ("local function report() io.open(%q, 'w'):close() end "):format(self.folder .. "/reported"), FINISHED, "\n", text)
  file:close()
  local words = joined(self:at "script", { binary(), "--remote", self.url, "--no-progress" }, self.options, { ... }, { name })
  local task = flow.exec(words, { check = false, cwd = self.cwd, env = self.environment })
  return task:next(function(ended)
    os.remove(name)
    if ended.state ~= "succeeded" then error(ended.error) end
    return ended.result
  end)
end

-- Starts a script whose op doubles the numbers 1 to `items`, `at_once` at a time. Each item executes `act`, a text that sees
-- `ctx`, `n` and `folder`, the server's. The script executes `first` once the items run, reports when each of the numbers
-- `reports` of items have finished, executes `last` at the end, and prints the state, the error, and how many results are right.
function Server:start_doubling(options)
  local reports = {}
  for k, number in ipairs(options.reports) do
    reports[k] = ("while finished(run) < %d do flow.sleep(0.001) end report()"):format(number)
  end
  return self:start(([[
  local folder = %q
  local Op = flow.op("WorkOp", { needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote", run = function(ctx)
    local n = ctx:get "n"
    %s
    ctx:set("r", n * 2)
  end })
  local list = {}
  for k = 1, %d do list[k] = k end
  local run = flow.new("work"):data { ns = list }
    :add_grouped(Op, { input = "ns", output = "rs", max_concurrent = %d }):start()
  %s
  %s
  run:wait()
  local good = 0
  for k, r in ipairs(run.data.rs or {}) do if r == 2 * k then good = good + 1 end end
  %s
  print(run.state, run.error, good)]]):format(self.folder.path, options.act, options.items, options.at_once,
    options.first or "", table.concat(reports, "\n"), options.last or ""))
end

return remote
