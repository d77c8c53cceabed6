-- Machines with networks of their own, joined by cables and a switch: what happens to the cable of one happens to no other.
--
--   local net <close> = network.enter { "queue", "script", "m1", "m2" }
--   if not net then return end
--   local server <close> = remote.server { network = net }
--   net:unplug "m1"
--
-- The test executes in namespaces of processes, mounts and networks, for which it needs no rights. The kernel ends all
-- that it has started, and removes its mounts, when it ends, however that happens.
local check = require "check"
local flow, host = require "flow", require "host"

local network = {}
network.__index = network

local INSIDE = "FLOWLUA_TEST_NETWORK"

-- The first process of a namespace has to wait for those whose parents have ended.
local ENTER = [[
  mount -t tmpfs none /run && ip link add probe type veth peer name other && ip link del probe || exit 77
  "$@"
  exit $?
]]

-- Executes the test again within the namespaces, and ends with its status; returns if they can't be made.
local function enter()
  local words = {
    "setpriv", "--pdeathsig", "KILL", "unshare", "--user", "--map-root-user", "--net", "--mount", "--mount-proc", "--pid",
    "--fork", "--kill-child", "sh", "-c", ENTER, "sh", host.binary, arg[0], table.unpack(arg),
  }
  local result = flow.exec(words, { check = false, env = { [INSIDE] = "1", LUA_PATH = package.path } }):await()
  if result.status == 77 or result.stderr:find "^unshare: " then
    check.skip("no networks here: " .. result.stderr:match "[^\n]*")
    return
  end
  io.stdout:write(result.stdout)
  io.stderr:write(result.stderr)
  os.exit(result.status or 1)
end

local function shell(text)
  local result = flow.exec({ "sh", "-e", "-c", text }, { check = false }):await()
  if result.status ~= 0 then error(text .. "\n" .. result.stderr, 2) end
end

-- Goes into namespaces with machines of these names; returns nil if that isn't possible, once it has said so. slow: the
-- names of those whose cables delay each packet by 50 ms, and lose 1 %.
function network.enter(names, slow)
  if not os.getenv(INSIDE) then return enter() end
  local self = setmetatable({ addresses = {} }, network)
  local is_slow = {}
  for _, name in ipairs(slow or {}) do is_slow[name] = true end
  local commands = { "ip link set dev lo up; ip link add switch type bridge; ip link set dev switch up" }
  for k, name in ipairs(names) do
    self.addresses[name] = "10.77.0." .. k
    local make = is_slow[name] and "" or [[
      ip link add NAME type veth peer name cable netns NAME
      ip link set dev NAME master switch up; ip -n NAME addr add ADDRESS/24 dev cable; ip -n NAME link set dev cable up
    ]]
    commands[#commands + 1] = ("ip netns add NAME; ip -n NAME link set dev lo up\n" .. make)
      :gsub("%u%u%u%u+", { NAME = name, ADDRESS = self.addresses[name] })
  end
  shell(table.concat(commands, "\n"))
  if slow then
    local words = { "python3", "Tests/servers/slow_cables.py", "0.05", "0.01" }
    for _, name in ipairs(slow) do words[#words + 1] = name .. "=" .. self.addresses[name] end
    self.cables = flow.exec(words)
    assert(self.cables:lines()() == "ready")
  end
  return self
end

function network:__close()
  if not self.cables then return end
  self.cables:cancel()
  pcall(self.cables.await, self.cables)
end

-- The first words of a program that executes on a machine.
function network:words(name)
  assert(self.addresses[name], name)
  return { "nsenter", "--net=/run/netns/" .. name }
end

-- Pulls the cable of a machine out of the switch, and puts it back.
function network:unplug(name) shell("ip link set dev " .. name .. " down") end
function network:plug(name) shell("ip link set dev " .. name .. " up") end

-- Makes a disk of so many KiB; returns its folder.
function network:disk(name, size)
  local folder = "/run/disks/" .. name
  shell(("mkdir -p %s; mount -t tmpfs -o size=%dk none %s"):format(folder, size, folder))
  return folder
end

-- The number of processes that have a text among their words.
function network.processes(text)
  local found = flow.exec({ "pgrep", "-f", text }, { check = false }):await().stdout
  return select(2, found:gsub("%d+", ""))
end

return network
