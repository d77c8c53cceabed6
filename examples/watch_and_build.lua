-- Watches a folder, and runs a build program after each change; its output appears line by line.
--
--   scripts/flowlua examples/watch_and_build.lua DIR COMMAND ...   builds until Ctrl-C
--   scripts/flowlua examples/watch_and_build.lua                   shows it on a folder of its own
local flow = require "flow"
local fs = flow.fs

local folder, command = arg[1], table.move(arg, 2, #arg, 1, {})
local edits = {}
if not folder then
  folder = fs.temp_dir()
  command = { "sh", "-c", "! grep -n TODO page.txt >&2 && echo $(wc -w <page.txt) words" }
  -- The texts that someone would write with an editor meanwhile.
  edits = { "hello world", "hello TODO world", "hello brave new world" }
end

local BuildOp = flow.op("BuildOp", {
  doc = "Runs the build program, and shows its lines as they come.",
  timeout = 600,
  run = function()
    local program = flow.exec(command, { cwd = folder })
    for line, stream in program:lines() do
      print((stream == "stderr" and "  ! " or "  ") .. line)
    end
    program:await()
  end,
})

local changes = fs.watch(folder, { recursive = true })
local function edit()
  local text = table.remove(edits, 1)
  if text then
    fs.write(folder .. "/page.txt", text .. "\n")
  elseif not arg[1] then
    changes:close()
  end
end

edit()
for change in changes do
  print(change.kind .. " " .. change.path:sub(#folder + 2))
  local run = BuildOp:run()
  print(run.ok and "built" or "not built: " .. run.error.message:match "status.*")
  edit()
end
