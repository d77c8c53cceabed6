-- A notebook without a browser: Tests/servers/notebook.py. Such a test says `-- python: jupyter_client` and runs on the
-- real clock.
--
--   local notebook <close> = notebooks.open("flowlua", { HOME = folder })
--   print(notebook:execute { code = "1 + 1" }.result)
local flow = require "flow"
local json = flow.json

local notebooks, Notebook = {}, {}

-- All functions of the program are methods; their arguments are fields of the table.
function Notebook.__index(notebook, name)
  return function(_, fields)
    local command = { ["do"] = name }
    for key, value in pairs(fields or {}) do command[key] = value end
    notebook.program:write(json.encode(command) .. "\n")
    local line = notebook.replies()
    if not line then error("the notebook has ended: " .. tostring(notebook.program:await().stderr), 2) end
    local reply = json.decode(line)
    if reply.error then error(name .. ": " .. reply.error, 2) end
    return reply
  end
end

function Notebook.__close(notebook)
  notebook.program:close_stdin()
  pcall(notebook.program.await, notebook.program)
end

-- Starts a kernel by its name, with variables of the environment.
function notebooks.open(kernel, environment)
  local program = flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON", "Tests/servers/notebook.py", kernel },
    { stdin = "pipe", env = environment })
  local lines = program:lines()
  -- The kernel's lines on stderr are part of an error.
  local function replies()
    while true do
      local line, stream = lines()
      if not line or stream == "stdout" then return line end
    end
  end
  local line = replies()
  if line ~= "ready" then error("no kernel: " .. program:await().stderr, 2) end
  return setmetatable({ program = program, replies = replies }, Notebook)
end

return notebooks
