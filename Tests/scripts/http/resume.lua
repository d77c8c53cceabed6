-- A download is continued where it ended, if the file on the server is still the same; else it begins from the start.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local host = require "host"
local server <close> = servers.hostile()
local folder <close> = servers.folder()
local SIZE = 300000

local function sum(path)
  local pipe <close> = io.popen("sha256sum <" .. path .. " 2>/dev/null")
  return pipe:read "a":match "^%x+"
end
local number = 0

-- A download that is cut after 100,000 bytes, and one that continues. Returns the ranges that were asked for.
local function twice(parameters, between)
  number = number + 1
  local name, id = "file" .. number, servers.id()
  local path = folder .. "/" .. name
  local query = { of = name, id = id, size = SIZE, cut = 100000 }
  for key, value in pairs(parameters or {}) do query[key] = value end
  local request = { url = server:url("/file", query), save = path, resume = true, timeout = 60 }
  local task = flow.http(request)
  task:wait()
  check.equal(task.state, "failed", name)
  check.equal(io.open(path), nil, name)
  if between then between(path, name) end
  task = flow.http(request)
  task:wait()
  if task.state ~= "succeeded" then return nil, task.error end
  check.equal(sum(path), flow.http(server:url("/sum", { of = name, size = SIZE })):await().body, name)
  local ranges = {}
  for i, seen in ipairs(server:requests(id)) do ranges[i] = seen.headers.range or "all" end
  local pipe <close> = io.popen("ls -A " .. folder .. " | grep -c " .. name .. "'[^0-9]'")
  check.equal(pipe:read "a", "0\n", "files left beside " .. name)
  return table.concat(ranges, " ")
end

check.equal(twice(), "all bytes=100000-")
check.equal(twice { how = "reset" }, "all bytes=100000-")
check.equal(twice({ tag = "none", date = 1 }), "all bytes=100000-")
-- The file is another one now.
check.contains(twice({}, function(_, name) flow.http(server:url("/change", { of = name })):await() end),
  "all bytes=100000-")
check.contains(twice({ tag = "none", date = 1 }, function(_, name)
  flow.http(server:url("/change", { of = name })):await()
end), "all bytes=100000-")
-- The server can't continue.
check.equal(twice { ranges = "ignored" }, "all bytes=100000-")
-- It can't say whether it is the same: from the start.
check.equal(twice { tag = "none" }, "all all")
check.equal(twice { tag = "weak" }, "all all")
-- It continues another version than the one that was asked for.
local function change(_, name) flow.http(server:url("/change", { of = name })):await() end
check.equal(twice({ ranges = "careless" }, change), "all bytes=100000- all")
check.equal(twice({ ranges = "careless", tag = "none", date = 1 }, change), "all bytes=100000- all")
check.equal(twice { ranges = "careless" }, "all bytes=100000-")
check.equal(twice { ranges = "careless", tag = "none", date = 1 }, "all bytes=100000-")
-- It sends less than it is asked for: the next range follows.
check.equal(twice { most = 70000 }, "all bytes=100000- bytes=170000- bytes=240000-")
-- It sends more than it declares: nobody knows which bytes they are.
check.equal(twice { most = 70000, ranges = "long" }, "all bytes=100000- all")
-- It continues at another place, or refuses: from the start, or an error; never a wrong file.
local ranges, e = twice { ranges = "wrong" }
check.equal(e == nil or e.kind == "network" or e.kind == "http", true)
ranges, e = twice { ranges = "refused" }
check.equal(e == nil or e.kind == "http", true)

-- It sends nothing of the range: an error that another attempt may mend, and what is there stays.
local id = servers.id()
local run = flow.op("DownloadOp", { retry = 3, run = function()
  return flow.http {
    url = server:url("/file", { of = "empty", id = id, size = SIZE, cut = 100000, ranges = "empty" }),
    save = folder .. "/empty", resume = true, timeout = 60,
  }
end }):run()
check.equal(run.error.kind, "network")
check.equal(run.error.phase, "receive")
check.contains(run.error, "the response has no byte of the file from byte 100000 on")
check.equal(#server:requests(id), 3)
check.equal(io.open(folder .. "/empty"), nil)
check.equal(#io.open(folder .. "/empty.part"):read "a", 100000)

-- `max_bytes` counts the whole file.
local path = folder .. "/limited"
local limited = {
  url = server:url("/file", { of = "limited", id = "limited", size = SIZE, cut = 100000, most = 70000 }), save = path,
  resume = true, timeout = 60, max_bytes = 200000,
}
local large = flow.http(limited)
large:wait()
check.equal(large.state, "failed")
large = flow.http(limited)
large:wait()
check.contains(large.error, "more than 200000 bytes (max_bytes)")
check.equal(io.open(path), nil)

-- An attempt of an op continues, too.
id = servers.id()
path = folder .. "/attempts"
run = flow.op("DownloadOp", { retry = 5, run = function()
  return flow.http {
    url = server:url("/file", { of = "attempts", id = id, size = SIZE, cut = 50000, cuts = 3 }), save = path, resume = true,
  }
end }):run()
check.equal(run.ok, true, tostring(run.error))
check.equal(sum(path), flow.http(server:url("/sum", { of = "attempts", size = SIZE })):await().body)
local seen = server:requests(id)
check.equal(seen[2].headers.range, "bytes=50000-")
check.equal(seen[4].headers.range, "bytes=150000-")
check.contains(seen[2].headers["if-range"], '"attempts-1"')

-- A file that is whole already is fetched again only in part, or found to be the same.
flow.http { url = server:url("/file", { of = "attempts", size = SIZE }), save = path, resume = true }:await()
check.equal(sum(path), flow.http(server:url("/sum", { of = "attempts", size = SIZE })):await().body)

-- The program is killed in the middle, and started again.
id = servers.id()
path = folder .. "/killed"
local url = server:url("/file", { of = "killed", id = id, size = SIZE, cut = 200000, how = "hang" })
local script = ([[
  require "flow".http { url = %q, save = %q, resume = true, timeout = 60 }:await()
]]):format(url, path)
local pid_file = folder .. "/pid"
local child = flow.exec({ "sh", "-c", 'echo $$ >"$0"; exec "$@"', pid_file, host.binary, "-e", script },
  { check = false })
servers.eventually(function()
  local pipe <close> = io.popen("cat " .. path .. "?* 2>/dev/null | wc -c")
  return tonumber(pipe:read "a") >= 200000
end, "200,000 bytes in the file")
local file <close> = assert(io.open(pid_file))
os.execute("kill -9 " .. file:read "n")
check.equal(child:await().signal, 9)
check.equal(io.open(path), nil)
flow.http { url = url, save = path, resume = true }:await()
check.equal(sum(path), flow.http(server:url("/sum", { of = "killed", size = SIZE })):await().body)
seen = server:requests(id)
check.equal(#seen, 2)
local first = tonumber(seen[2].headers.range:match "bytes=(%d+)%-")
check.equal(first >= 200000 - (1 << 16) and first <= 200000, true, "continued at " .. first)

-- Two downloads to one path: the second would write into what the first has.
local request = { url = server:url("/file", { of = "both", size = SIZE }), save = folder .. "/both", resume = true }
local one, other = flow.http(request), flow.http(request)
other:wait()
check.equal(other.state, "failed")
check.contains(other.error, "can't write '" .. folder .. "/both': another download to it continues")
one:await()
check.equal(sum(request.save), flow.http(server:url("/sum", { of = "both", size = SIZE })):await().body)
flow.http(request):await()

-- Others may write into the folder, too, and know the names beside the file: links there lead nowhere, and only a file
-- of this user is a part.
local function planted(name, plant)
  local victim, path = folder .. "/victim", folder .. "/planted-" .. name
  flow.fs.write(victim, "mine")
  plant(path, victim)
  local task = flow.http {
    url = server:url("/file", { of = name, id = servers.id(), size = SIZE, cut = 100000 }), save = path, resume = true,
    timeout = 60,
  }
  task:wait()
  check.equal(flow.fs.read(victim), "mine", name)
  return task.error, path
end
local function sh(...) return flow.exec({ "sh", "-c", ... }):await() end
for name, command in pairs {
  link = 'ln -s "$2" "$1.part"', dangling = 'ln -s "$2-none" "$1.part"', hard = 'ln "$2" "$1.part"', pipe = 'mkfifo "$1.part"',
} do
  local problem, path = planted(name, function(...) sh(command, "sh", ...) end)
  check.equal(tostring(problem):match "can't write.*", ("can't write '%s': '%s.part' isn't a part of it: a link, or no file of "
    .. "this user"):format(path, path), name)
  check.equal(flow.fs.exists(folder .. "/victim-none"), false)
end
local problem, path = planted("tag", function(...) sh('ln -s "$2" "$1.part.tag"', "sh", ...) end)
check.equal(problem.kind, "network")
check.equal(flow.fs.stat(path .. ".part.tag").type, "file")
