-- Servers that tests talk to: each listens on free ports of the loopback, accepts connections when its function
-- returns, and ends when its variable is closed or the test ends, however that happens.
--
--   local server <close> = servers.hostile()
--   flow.http(server:url("/echo", { a = 1 }))
local servers = {}
servers.__index = servers

local function quoted(text) return "'" .. tostring(text):gsub("'", [['\'']]) .. "'" end

local function encoded(text)
  return (tostring(text):gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

-- Debian's interpreter: another one on the PATH may take longer to start than a test.
local python = io.open "/usr/bin/python3" and "/usr/bin/python3" or "python3"

-- A folder for a test, removed when it is closed.
function servers.folder()
  local pipe <close> = io.popen "mktemp -d"
  return setmetatable({ path = pipe:read "l" }, {
    __close = function(folder) os.execute("rm -rf " .. quoted(folder.path)) end,
    __tostring = function(folder) return folder.path end,
    __concat = function(a, b) return tostring(a) .. tostring(b) end,
  })
end

-- Runs a script of Tests/servers. Its output comes through a named pipe; the other end of its standard input is
-- kept, so that the server ends with this process.
local function start(script, ...)
  local words = { "exec", python, "Tests/servers/" .. script }
  for _, word in ipairs { ... } do words[#words + 1] = quoted(word) end
  local folder <close> = servers.folder()
  local path = folder .. "/output"
  assert(os.execute("mkfifo " .. path))
  local self = setmetatable({}, servers)
  self.process = assert(io.popen(("%s >%s"):format(table.concat(words, " "), path), "w"))
  local output <close> = assert(io.open(path))
  for line in output:lines() do
    if line == "ready" then return self end
    local name, value = line:match "^(%w[%w_]*)=(.*)$"
    self[name] = tonumber(value) or value
  end
  error("no server: " .. script, 2)
end

function servers:__close()
  -- Waits for its end.
  self.process:close()
end

-- Tests/servers/hostile.py; its ports are fields.
function servers.hostile() return start "hostile.py" end
-- Fields: http, https (HTTP/2 and 1.1), https1 (1.1), wrong and expired (certificates), client (asks for one), and
-- the paths ca_pem, client_pem, client_key…. big: the size of /big.
function servers.nginx(big) return start("serve.py", "nginx", big) end
-- Fields: open, asking (a password of `user`, which is `password`).
function servers.proxy() return start("serve.py", "proxy") end
-- Python's http.server, of a folder. Field: http.
function servers.files(folder) return start("serve.py", "files", folder) end
-- A server of NATS with machines that have joined it, with a worker each. Fields: nats, and m1, m2…, their processes.
function servers.nats(binary, machines) return start("serve.py", "nats", binary, machines) end

-- The address of a path. query: fields and lists; port: the name of one.
function servers:url(path, query, port)
  port = port or "http"
  local scheme = (path == "" or self.ca_pem and port ~= "http") and "https" or "http"
  local names, parts = {}, {}
  for name in pairs(query or {}) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local values = query[name]
    for _, value in ipairs(type(values) == "table" and values or { values }) do
      parts[#parts + 1] = encoded(name) .. "=" .. encoded(value)
    end
  end
  local text = #parts > 0 and "?" .. table.concat(parts, "&") or ""
  return ("%s://127.0.0.1:%d%s%s"):format(scheme, assert(self[port], port), path, text)
end

-- The address at which the hostile server writes these bytes as they are. query: pause, size, hold, keep, id.
function servers:raw(bytes, query)
  local all = { data = bytes }
  for name, value in pairs(query or {}) do all[name] = value end
  return self:url("/raw", all)
end

-- The response that curl gets there; the client under test isn't asked.
function servers.curl(...)
  local words = { "curl", "--silent", "--show-error", "--max-time", "60" }
  for _, word in ipairs { ... } do words[#words + 1] = quoted(word) end
  local pipe <close> = io.popen(table.concat(words, " "))
  return pipe:read "a"
end

local last = 0
-- A name for requests, to look them up.
function servers.id()
  last = last + 1
  return "id" .. last
end

-- The requests that the hostile server received with an id, in order: method, path, headers, body, connection….
function servers:requests(id)
  return require "flow.json".decode(servers.curl(self:url("/requests", { of = id })))
end

-- accepted, open and most (connections), sent (bytes, for an id), closed (when its client closed), ended, now.
function servers:state(id)
  local state = require "flow.json".decode(servers.curl(self:url("/state", { of = id or "" })))
  -- Without the connection that asked.
  state.open = state.open - 1
  return state
end

-- Calls `reached` until it is true. A server notices things later than its client.
function servers.eventually(reached, what)
  local flow = require "flow"
  local from = os.time()
  while not reached() do
    if os.time() - from > 30 then error("never: " .. what, 2) end
    flow.sleep(0.005)
  end
end

-- The numbers of the descriptors that are open. Looked up one by one: a program that lists them has its own.
function servers.descriptors()
  local count = 0
  for number = 0, 255 do
    local file <close> = io.open("/proc/self/fdinfo/" .. number)
    if file then count = count + 1 end
  end
  return count
end

return servers
