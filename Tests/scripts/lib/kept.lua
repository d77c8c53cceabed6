-- A script in a folder of its own, whose runs are kept in `.flowlua` there. Such tests run on the real clock.
local check, flow, host = require "check", require "flow", require "host"

local kept = {}
kept.__index = kept

-- In the script, `effect(text)` appends a line to a file that `effects` returns.
local prelude = [[
local flow = require "flow"
local function effect(text)
  local file = io.open("effects", "a")
  file:write(tostring(text), "\n")
  file:close()
end
]]

-- Waits until a condition holds.
function kept.waits(condition)
  local deadline = flow.now() + 100
  while not condition() do
    assert(flow.now() < deadline, "it never happened")
    flow.sleep(0.01)
  end
end

function kept.script(text)
  local folder = flow.fs.temp_dir()
  local self = setmetatable({ folder = folder, path = folder .. "/script.lua", text = text }, kept)
  self:write(text)
  return self
end

function kept:write(text)
  self.text = text
  flow.fs.write(self.path, prelude .. text)
end

-- Replaces a part of the script, which must be there once.
function kept:edit(from, to)
  local start, stop = self.text:find(from, 1, true)
  assert(start and not self.text:find(from, stop + 1, true), "not there once: " .. from)
  self:write(self.text:sub(1, start - 1) .. to .. self.text:sub(stop + 1))
end

-- The path of a program for a script, whose folder is another one.
function kept.binary(path) return path:find "^/" and path or os.getenv "PWD" .. "/" .. path end

-- Starts flowlua with options, and `environment` among them; the program, a task.
function kept:start(options)
  options = options or {}
  local words = { "env", "-u", "FLOWLUA_KEEP" }
  for name, value in pairs(options.environment or {}) do words[#words + 1] = name .. "=" .. value end
  words[#words + 1] = kept.binary(self.program or host.binary)
  for _, word in ipairs(options) do words[#words + 1] = word end
  words[#words + 1] = self.path
  for _, word in ipairs(options.arguments or {}) do words[#words + 1] = word end
  return flow.exec(words, { cwd = self.folder, check = false })
end

function kept:run(options) return self:start(options):await() end

-- Runs it with `--resume --follow`; returns what it wrote to stderr, without the times.
function kept:resume(options)
  local words = { "--resume", "--follow", environment = options and options.environment }
  for _, word in ipairs(options or {}) do words[#words + 1] = word end
  local result = self:run(words)
  return result.stderr:gsub("%f[^\n%z]%d+:%d%d:%d%d [AP]M ", ""), result
end

-- The lines that `effect` has written since the last call.
function kept:effects()
  local path = self.folder .. "/effects"
  if not flow.fs.exists(path) then return {} end
  local lines = {}
  for line in flow.fs.read(path):gmatch "[^\n]+" do lines[#lines + 1] = line end
  flow.fs.remove(path)
  return lines
end

-- Fails unless these lines are those that `effect` has written, in any order.
function kept:expect_effects(...)
  local found, wanted = self:effects(), { ... }
  table.sort(found)
  table.sort(wanted)
  check.equal(table.concat(found, " "), table.concat(wanted, " "))
end

-- Runs it, and compares its status and its effects; returns what it wrote to stderr.
function kept:expect(status, words, ...)
  local result = self:run(words)
  check.equal(result.status, status, result.stderr)
  self:expect_effects(...)
  return result.stderr
end

return kept
