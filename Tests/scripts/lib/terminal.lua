-- Runs flowlua on a pseudo-terminal whose screen a test reads: Tests/terminal/screen.py. Such a test says
-- `-- python: pyte` and runs on the real clock.
local flow, host = require "flow", require "host"
local json = flow.json

local terminal = {}
terminal.__index = terminal

local prelude = [[
local flow = require "flow"
-- Waits until the test calls `go(n)`.
local function pause(n)
  while true do
    local file = io.open(arg[1] .. n)
    if file then return file:close() end
    flow.sleep(0.002)
  end
end
]]

-- Starts a script, or with `shell` a shell in which `$RUN` starts it. Options: `columns`, `rows`, `options` of
-- flowlua, `environment` (names and values, false for none).
function terminal.start(script, options)
  options = options or {}
  local folder = flow.fs.temp_dir()
  local self = setmetatable({ folder = folder }, terminal)
  local path = folder .. "/script.lua"
  flow.fs.write(path, prelude .. script)
  local words = { "env", "TERM=xterm", "LC_ALL=C.UTF-8", "PS1=shell$ ", "ENV=" }
  for name in ("NO_COLOR LANG LC_CTYPE"):gmatch "%S+" do table.insert(words, 2, "--unset=" .. name) end
  for name, value in pairs(options.environment or {}) do words[#words + 1] = name .. "=" .. value end
  local run = { host.binary }
  for _, option in ipairs(options.options or {}) do run[#run + 1] = option end
  table.move({ path, folder .. "/go" }, 1, 2, #run + 1, run)
  if options.shell then
    words[#words + 1] = "RUN=" .. table.concat(run, " ")
    run = { "sh", "-i" }
  end
  table.move(run, 1, #run, #words + 1, words)
  local program = { os.getenv "FLOWLUA_TEST_PYTHON", "Tests/terminal/screen.py", tostring(options.columns or 80),
    tostring(options.rows or 36) }
  table.move(words, 1, #words, #program + 1, program)
  self.program = flow.exec(program, { stdin = "pipe" })
  self.replies = self.program:lines()
  return self
end

function terminal:command(command)
  self.program:write(json.encode(command) .. "\n")
  local line, stream = self.replies()
  if stream ~= "stdout" then error(line or "the terminal has ended") end
  self.state = json.decode(line)
  return self.state
end

-- The lines on the screen and those that have left it, as one text.
function terminal:text() return table.concat(self:command { screen = true }.lines, "\n") end

-- Lets the script continue after `pause(n)`.
function terminal:go(n) flow.fs.write(self.folder .. "/go" .. n, "") end

function terminal:type(text) self:command { type = text } end

-- With `wraps` the terminal wraps what is too long then, otherwise it cuts it.
function terminal:resize(columns, rows, wraps) self:command { columns = columns, rows = rows, wraps = wraps } end

-- Waits until the text has, or as a pattern matches, all of these; returns it.
function terminal:expect(...)
  local text
  local deadline = flow.now() + 60
  repeat
    text = self:text()
    local missing
    for _, wanted in ipairs { ... } do
      if not text:find(wanted) then missing = wanted end
    end
    if not missing then return text end
    if self.state.status or flow.now() > deadline then
      error("'" .. missing .. "' isn't shown, but:\n" .. text, 2)
    end
    flow.sleep(0.01)
  until false
end

-- Waits for the end of the program; returns the text and the status.
function terminal:finish()
  local deadline = flow.now() + 60
  repeat
    local text = self:text()
    if self.state.status then
      self.program:close_stdin()
      self.program:await()
      return text, self.state.status
    end
    flow.sleep(0.01)
  until flow.now() > deadline
  error("the program doesn't end:\n" .. self:text(), 2)
end

return terminal
