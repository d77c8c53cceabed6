-- Machines that `--hosts` starts on this machine, and what is left of them.
--
--   local place <close> = hosts.place()
--   local result = place:run([[ print(flow…) ]], "--hosts", "a,b")
local flow = require "flow"
local host = require "host"
local servers = require "servers"

local hosts = {}
local Place = {}
Place.__index = Place

-- The program with its path from the root.
local function binary()
  if host.binary:find "^/" then return host.binary end
  local pipe <close> = io.popen "pwd"
  return pipe:read "l" .. "/" .. host.binary
end

-- Writes a file of the folder; returns its path.
function Place:write(name, text, is_program)
  local path = self.folder .. "/" .. name
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  if is_program then assert(os.execute(("chmod 755 '%s'"):format(path))) end
  return path
end

-- A folder whose name all processes have in their command lines: the program `flowlua` there is the one under test, and
-- `launcher HOST COMMAND…` executes a command here.
function hosts.place()
  local self = setmetatable({ folder = servers.folder() }, Place)
  self.flowlua = self:write("flowlua", ("#!/bin/bash\nexec -a '%s/flowlua' '%s' \"$@\"\n"):format(self.folder, binary()), true)
  self.launcher = self:write("launcher", "#!/bin/sh\necho \"$1\" >>'" .. self.folder .. "/launched'\nshift\nexec \"$@\"\n", true)
  self.temporary = self.folder .. "/tmp"
  assert(os.execute(("mkdir '%s' '%s/bin'"):format(self.temporary, self.folder)))
  return self
end

function Place:__close() getmetatable(self.folder).__close(self.folder) end

-- The processes whose command line has the folder in it: a list of command lines. A dead one that nobody has waited for
-- has none.
function Place:processes()
  local found = {}
  for line in flow.exec({ "pgrep", "-af", tostring(self.folder) }, { check = false }):await().stdout:gmatch "[^\n]+" do
    found[#found + 1] = line
  end
  return found
end

-- Waits until none of them is left.
function Place:wait_for_end()
  local left
  for _ = 1, 3000 do
    left = self:processes()
    if #left == 0 then return end
    flow.sleep(0.01)
  end
  error("these processes are left:\n" .. table.concat(left, "\n"), 2)
end

-- The rest in the folder for temporary files.
function Place:left() return flow.exec({ "ls", "-A", self.temporary }):await().stdout end

-- The words before the script: the launcher and the program of this folder, unless others are given.
local function words(self, ...)
  local found = { self.flowlua, "--no-progress", "--hosts-launcher", self.launcher, "--hosts-command", self.flowlua, ... }
  found[#found + 1] = self.script
  return found
end

-- Starts a text as a script; further words are options. Returns its task. `report()` in the script and `wait_for_report`
-- meet each other.
function Place:start(text, ...)
  os.remove(self.folder .. "/reported")
  self.script = self:write("script.lua",
    ("local flow = require 'flow'\nlocal function report() io.open(%q, 'w'):close() end\n"):format(self.folder .. "/reported") .. text)
  local environment = { TMPDIR = self.temporary }
  for name, value in pairs(self.environment or {}) do environment[name] = value end
  return flow.exec(words(self, ...), { check = false, env = environment })
end

function Place:wait_for_report(task)
  local path = self.folder .. "/reported"
  for _ = 1, 6000 do
    local file = io.open(path)
    if file then return file:close() end
    if task.state ~= "pending" then
      local result = task:await()
      error("the script ended: " .. result.stdout .. result.stderr, 2)
    end
    flow.sleep(0.01)
  end
  error("the script hasn't reported", 2)
end

-- Reads the output of a script; `reader:wait(pattern)` returns once the lines until then have that in them.
function Place:reader(task)
  local reader = { text = "\n" }
  local lines = task:lines()
  function reader:wait(pattern)
    while not self.text:find(pattern) do
      local line = lines()
      if not line then error(("no '%s' in %s"):format(pattern, self.text), 2) end
      self.text = self.text .. line .. "\n"
    end
  end
  return reader
end

-- Runs a text as a script; returns { status, stdout, stderr }.
function Place:run(text, ...) return self:start(text, ...):await() end

-- A script that prints where a group of ops has executed, once `count` workers have taken part.
function hosts.lanes(count)
  return ([[
    local Op = flow.op("LaneOp", {
      needs = { n = "integer" }, gives = { lane = "string" }, thread = "remote",
      run = function(ctx) require "flow".sleep(0.05) ctx:set("lane", ctx.lane) end,
    })
    local seen, list = {}, {}
    repeat
      local items = {}
      for n = 1, 8 do items[n] = n end
      local run = flow.new("lanes"):data { items = items }:add_grouped(Op, { input = "items", output = "lanes" }):run()
      assert(run.ok, run.error)
      for _, lane in ipairs(run.data.lanes) do
        if not seen[lane] then
          seen[lane] = true
          list[#list + 1] = lane
        end
      end
    until #list == %d
    table.sort(list)
    print(table.concat(list, " "))
  ]]):format(count)
end

return hosts
