-- Streams, headers and objects are those that NATS' other clients expect: one reads code and files, and stores files.
-- clock: real: other processes execute the ops
-- python: nats
local check, flow, fs, nats, remote = require "check", require "flow", require "flow.fs", require "nats", require "remote"
local servers = require "servers"

local server <close> = remote.server()
local client <close> = nats.client(server.url)
local dir <close> = servers.folder()
server.cwd = dir.path
local parts = {}
for k = 1, 50000 do parts[k] = ("%015d\n"):format(k) end
fs.write(dir .. "/scene.txt", table.concat(parts))

local op = [[
  local Op = flow.op("ReadOp", {
    needs = { n = "integer", scene = "file" }, gives = { hash = "string" }, thread = "remote",
    run = function(ctx)
      assert(#"read by another client")
      ctx:set("hash", require "flow.fs".hash(ctx:get "scene") .. ctx:get "n")
    end,
  })
  local run = flow.new("f"):data { ns = { 1, 2, 3, 4, 5 }, scene = "scene.txt" }
    :add_grouped(Op, { input = "ns", as = "n", output = "hashes", max_concurrent = 5 }):run()
  local good = 0
  for k, hash in ipairs(run.data.hashes or {}) do if hash == flow.fs.hash "scene.txt" .. k then good = good + 1 end end
  print(run.state, run.error and run.error.message, good)
]]
local function join(name) return server:join { name = name, env = { XDG_CACHE_HOME = dir .. "/" .. name } } end
local function work() return client:stream { name = "FLOWLUA_WORK" } end
local function start()
  local script = server:start(op)
  -- The stream is there once the script has connected.
  servers.eventually(function()
    local ok, stream = pcall(work)
    return ok and stream.state.messages > 0
  end, "jobs in the queue")
  return script
end

-- Nobody has joined: the jobs wait.
local script = start()
local settings = work().config
check.same(settings.subjects, { "flowlua.work.>" })
check.equal(settings.retention, "workqueue")
check.equal(settings.storage, "file")
settings = client:stream { name = "FLOWLUA_NEWS" }.config
check.same(settings.subjects, { "flowlua.news.*" })
check.equal(settings.retention, "workqueue")
check.equal(settings.max_age, 24 * 3600 * 1000000000)

local consumers = client:consumers { stream = "FLOWLUA_WORK" }.consumers
check.equal(#consumers, 1)
local consumer = consumers[1]
local compatibility = consumer.name:match "^(%d+%-[%d_]+[%l-]*%-5_4_%d+)%-%+any$"
check.equal(compatibility ~= nil, true, consumer.name)
check.equal(consumer.config.filter_subject, "flowlua.work." .. compatibility .. ".+any.*")
check.equal(consumer.config.ack_policy, "explicit")
check.equal(consumer.config.ack_wait, 5 * 1000000000)
check.equal(consumer.config.max_deliver, 3)
check.equal(consumer.waiting > 0, true)
check.equal(consumer.handed_out, 0)

local message = client:message { stream = "FLOWLUA_WORK", number = work().state.first_seq }
local id = message.subject:match "%.(%x+)$"
check.equal(#id, 32)
check.equal(message.subject, "flowlua.work." .. compatibility .. ".+any." .. id)
check.match(message.headers["Nats-Msg-Id"], "^" .. id .. "%-")
-- It has the bytes themselves, and not the name of an object.
check.match(message.data, "^AA")
local reports = client:consumers { stream = "FLOWLUA_NEWS" }.consumers
check.equal(#reports, 1)
check.equal(reports[1].name, "script-" .. id)

-- The digest in the form of other clients, from one in hexadecimal digits.
local function digest(hash)
  local bytes = hash:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end)
  return "SHA-256=" .. nats.base64(bytes):gsub("+", "-"):gsub("/", "_")
end
-- The object of the file, and the object of the code which wasn't there before.
local known = {}
local function objects()
  local code, file
  for _, object in ipairs(client:objects { bucket = "flowlua" }.objects) do
    check.equal(object.chunk_size, 1 << 17)
    check.equal(object.chunks, (object.size + (1 << 17) - 1) // (1 << 17))
    if object.name:find "^file%-" then
      file = object
    elseif not known[object.name] then
      known[object.name], code = true, object
    end
  end
  return code, file
end
local hash = fs.hash(dir .. "/scene.txt")
local code, file = objects()
check.equal(file.name, "file-" .. hash)
check.equal(file.size, 800000)
check.equal(file.chunks, 7)
check.equal(file.digest, digest(hash))
client:get { bucket = "flowlua", name = file.name, path = dir .. "/got" }
check.equal(fs.hash(dir .. "/got"), hash)
check.equal(code.digest, digest(code.name))
client:get { bucket = "flowlua", name = code.name, path = dir .. "/code" }
check.equal(fs.hash(dir .. "/code"), code.name)
check.contains(fs.read(dir .. "/code"), "read by another client")

join "m1"
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t5\n")
-- The rest is the code.
check.equal(work().state.messages, 0)
check.equal(client:stream { name = "FLOWLUA_NEWS" }.state.messages, 0)
check.same(client:consumers { stream = "FLOWLUA_NEWS" }.consumers, {})
client:get { bucket = "flowlua", name = code.name, path = dir .. "/code" }
code, file = objects()
check.equal(code, nil)
check.equal(file, nil)

-- A file that another client has stored under its hash isn't sent, and isn't removed.
fs.write(dir .. "/scene.txt", table.concat(parts):reverse())
hash = fs.hash(dir .. "/scene.txt")
client:put { bucket = "flowlua", name = "file-" .. hash, path = dir .. "/scene.txt" }
local _, before = objects()
check.equal(server:run(op).stdout, "succeeded\tnil\t5\n")
_, file = objects()
check.same(file, before)

-- Code that another client has replaced isn't executed.
server.nodes[1]:signal "TERM"
server.nodes[1]:wait()
script = start()
code = objects()
fs.write(dir .. "/garbage", "\1garbage")
client:put { bucket = "flowlua", name = code.name, path = dir .. "/garbage" }
join "m2"
check.contains(script:await().stdout, "failed\t", "the code of the op isn't what its script has sent")
check.equal(server:run(op).stdout, "succeeded\tnil\t5\n")
