-- A body is saved beside its file and renamed at the end: the file is whole or isn't there.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local folder <close> = servers.folder()

local function content(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end
local function names()
  local pipe <close> = io.popen("ls -A " .. folder)
  return pipe:read "a"
end
local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local path = folder .. "/out"
local res = flow.http { url = server:url("/size", { size = 100000 }), save = path }:await()
check.equal(res.status, 200)
check.equal(res.body, "")
check.equal(res.saved, path)
check.equal(content(path), ("x"):rep(100000))
check.equal(names(), "out\n")

-- An empty body, a compressed one, one without a length.
flow.http { url = server:url "/reply", save = path }:await()
check.equal(content(path), "")
flow.http { url = server:url("/compressed", { size = 5000 }), save = path }:await()
check.equal(content(path), ("x"):rep(5000))
flow.http { url = server:url("/lines", { count = 3 }), save = path }:await()
check.equal(content(path), "1\n2\n3\n")

-- The file of before stays as it is when the request fails, is cancelled or runs out of time; nothing is left beside.
write(path, "before")
for _, url in ipairs {
  server:url("/truncated", { declared = 1000, sent = 100 }), server:url("/reset", { phase = "body" }),
  server:url("/reply", { status = 404, body = "not found" }), server:url("/", nil, "refused"),
} do
  local task = flow.http { url = url, save = path }
  task:wait()
  check.equal(task.state, "failed")
  check.equal(content(path), "before", url)
  check.equal(names(), "out\n", url)
end
local task = flow.http { url = server:url("/reply", { status = 404, body = "not found" }), save = path }
task:wait()
check.equal(task.error.body, "not found")
task = flow.http { url = server:url "/endless", save = path, timeout = 0.1 }
task:wait()
check.equal(task.error.kind, "timeout")
task = flow.http { url = server:url("/never", { part = "part" }), save = path }
flow.sleep(0.02)
task:cancel()
task:wait()
check.equal(content(path), "before")
check.equal(names(), "out\n")

-- Without `check` a body of a failure isn't the file that was asked for either.
res = flow.http { url = server:url("/reply", { status = 404, body = "not found" }), save = path, check = false }:await()
check.equal(res.status, 404)
check.equal(content(path), "before")
check.equal(names(), "out\n")

-- A file that can't be made is an error before anything is asked for.
local id = servers.id()
task = flow.http { url = server:url("/echo", { id = id }), save = folder .. "/none/out" }
task:wait()
check.contains(task.error.message, "none/out", "No such file or directory")
check.equal(#server:requests(id), 0)

-- A folder isn't replaced.
os.execute("mkdir " .. folder .. "/dir")
task = flow.http { url = server:url "/echo", save = folder .. "/dir" }
task:wait()
check.equal(task.state, "failed")
check.contains(task.error.message, "/dir")
