-- Garbage on the subjects, and nodes of other versions, harm nobody: a warning names both versions.
-- clock: real: other processes execute the ops
local check = require "check"
local remote = require "remote"

local server <close> = remote.server()

local function publish(subject, bytes) server:publish(subject, bytes) end

local op = [[
  local Op = flow.op("Op", { thread = "remote", gives = { r = "integer" }, run = function(ctx) ctx:set("r", 1) end })
  local run = flow.new("f"):add(Op):run()
  print(run.state, run.error and run.error.message)
]]

-- The message of a node of an earlier version.
local other = string.pack("s1s1s1s1s1", "id7", "oldbox", "2-0_0_9-5_4_3", "0.0.9", "5.4.3") .. "\4\4\0\0"
local waits = server:start(op, "--remote-timeout", "2")
while waits.state == "pending" do
  publish("flowlua.here", other)
  require "flow".sleep(0.05)
end
local result = waits:await()
check.contains(result.stderr, "oldbox can't execute ops of this script: it has flowlua 0.0.9 with Lua 5.4.3, this is ")
check.contains(result.stdout, "failed\tno node that has joined ", "; oldbox: it has flowlua 0.0.9 with Lua 5.4.3 (waited 2s")

server:join "m1"
local compatibility = assert(server:run([[
  -- The text that both sides have to agree on, from the versions.
  local program = io.popen(arg[-4] .. " --version"):read "a"
  local lua, version = program:match "Lua (%S+).-flowlua (%S+)"
  print("4-" .. version:gsub("%.", "_") .. "-" .. lua:gsub("%.", "_"))
]]).stdout:match "^(%S+)\n")
math.randomseed(7)
for _, subject in ipairs {
  "flowlua.work." .. compatibility .. ".+any.0123456789abcdef", "flowlua.news.0123456789abcdef",
  "flowlua.stop." .. compatibility .. ".0123456789abcdef", "flowlua.here", "flowlua.who", "flowlua.ask.x",
} do
  for length = 0, 12 do
    local bytes = {}
    for k = 1, length do bytes[k] = string.char(math.random(0, 255)) end
    -- Some begin as messages do.
    publish(subject, (length % 2 == 0 and "\0\2" or "") .. table.concat(bytes))
  end
end
check.equal(server:run(op).stdout, "succeeded\tnil\n")

-- Two scripts of one name at once.
local first, second = server:start(op), server:start(op)
check.equal(first:await().stdout, "succeeded\tnil\n")
check.equal(second:await().stdout, "succeeded\tnil\n")
