-- Whatever libraries a kept script has used, and however it ends, its status is its own, and its run ends as it says.
-- clock: real: the script is another program
--
-- OpenSSL would release at the exit what other threads use, if anybody but flowlua had initialized it: libcurl, libnats,
-- or a C library of the script, of which RAND_status stands for any.
local check, flow, kept = require "check", require "flow", require "kept"

local LIBRARIES = {
  none = "",
  curl = [[pcall(function() flow.http { url = "http://127.0.0.1:1/" }:await() end)]],
  nats = [[
    flow.remote { url = "nats://127.0.0.1:1", timeout = 0.1 }
    assert(flow.op("FarOp", { thread = "remote", run = function() end }):run().error)]],
  digest = [[flow.fs.hash(arg[0])]],
  native = [[
    local status = package.loadlib("libcrypto.so.3", "RAND_status")
    if status then status(0) end]],
}
-- The last line of a script, the status, and the state of its run.
local WAYS = {
  { [[flow.new("f"):run() os.exit(0)]], 0, "finished" },
  { [[flow.new("f"):run() os.exit(3)]], 3, "failed" },
  { [[flow.new("f"):run() os.exit(true, true)]], 0, "finished" },
  { [[flow.op("WaitOp", function() os.exit(0) end):run()]], 0, "unfinished" },
  { [[flow.op("WaitOp", function() os.exit(3, true) end):run()]], 3, "unfinished" },
  { [[flow.op("WaitOp", function() flow.spawn(function() os.exit(false) end):wait() end):run()]], 1, "unfinished" },
  { [[flow.op("SleepOp", function() flow.sleep(1000) end):start() os.exit(0)]], 0, "unfinished" },
  { [[flow.new("f"):run()]], 0, "finished" },
  { [[flow.new("f"):run() error "no"]], 1, "failed" },
  { [[flow.op("EndOp", function() os.execute("kill -TERM " .. flow.pid()) flow.sleep(1000) end):run()]], 75, "unfinished" },
}
-- Threads that are at work when the script ends.
local THREADS = [[
for i = 1, 20 do
  flow.spawn(function() flow.fs.hash "zeros" end)
  flow.spawn(function() pcall(function() flow.http { url = "http://localhost:1/" }:await() end) end)
end
local BusyOp = flow.op("BusyOp", { thread = "worker", run = function() for _ = 1, 1e9 do end end })
if arg[1] == "busy" then BusyOp:start() end
]]

local function prove(library, way, busy)
  local text = LIBRARIES[library] .. "\n" .. (busy and THREADS or "") .. "\n" .. way[1]
  text = text:gsub("flow%.pid%(%)", [[io.open("/proc/self/stat"):read "a":match "^%%d+"]])
  local script = kept.script(text)
  if busy then flow.exec({ "truncate", "--size=7M", script.folder .. "/zeros" }):await() end
  local result = script:run { "--keep", arguments = { busy and busy or nil } }
  local what = ("%s: %s\n%s"):format(library, text, result.stderr)
  check.equal(result.status, way[2], what)
  check.equal(result.signal, nil, what)
  check.match(script:run({ "--runs" }).stdout, " " .. way[3] .. " ", what)
end

for library in pairs(LIBRARIES) do
  for _, way in ipairs(WAYS) do prove(library, way) end
  for i = 1, 4 do prove(library, { WAYS[i][1], WAYS[i][2], i == 2 and "failed" or "unfinished" }, "busy") end
  for _ = 1, 2 do prove(library, WAYS[1], "hash") end
end
