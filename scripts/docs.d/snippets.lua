-- Runs the snippets of a page, one after another, in a folder of their own. The clock is virtual
-- and starts at midnight, UTC, so that each prints the same whenever and wherever it runs.
local flow = require "flow"
local snippets = {}

local binary, root = os.getenv "FLOWLUA", os.getenv "PWD"
-- Languages of blocks that show what the snippet before them prints.
local outputs = { text = true, mermaid = true, dot = true }

local function write(path, text)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
end

-- Runs a program: its output, standard error included, and its status.
local function execute(argv, cwd)
  local result = flow.exec({ "sh", "-c", 'exec "$@" 2>&1 </dev/null', "sh", table.unpack(argv) }, {
    cwd = cwd, timeout = 60, check = false,
    env = {
      TZ = "UTC", LC_ALL = "C.UTF-8", PATH = cwd .. "/bin:" .. os.getenv "PATH",
      LUA_INIT = false, LUA_INIT_5_4 = false,
    },
  }):await()
  -- A run that is kept has another name each time.
  -- The ids of runs are random.
  local text = result.stdout:gsub("run r%w+ is kept", "run r7k2 is kept")
  return text:gsub(": r%w+: (%d+ kept)", ": r7k2: %1"), result.status
end

-- A folder where `flowlua`, `scripts/flowlua` and the examples are.
local function prepare(folder)
  for _, name in ipairs { "bin", "scripts" } do
    flow.exec({ "mkdir", "-p", folder .. "/" .. name }):await()
    local path = ("%s/%s/flowlua"):format(folder, name)
    write(path, ([=[
#!/usr/bin/env bash
# Nothing can be combined with --init.
[[ ${1-} == --init ]] || set -- --virtual-clock "$@"
exec -a flowlua "%s" "$@"
]=]):format(binary))
    flow.exec({ "chmod", "+x", path }):await()
  end
  flow.exec({ "ln", "-sfn", root .. "/examples", folder .. "/examples" }):await()
end

-- The Swift files that a file of this name is compiled with: itself, and those in its folder.
local function swift_files(folder, name)
  local parent = (folder .. "/" .. name):match "^(.*)/"
  local listed = flow.exec({ "sh", "-c", 'ls "$0"/*.swift', parent }):await().stdout
  local paths = {}
  for path in listed:gmatch "[^\n]+" do paths[#paths + 1] = path end
  return paths
end

local function run(block, folder, module_flags)
  local marker = block.marker
  if block.language == "lua" then
    local name = marker.file or "snippet.lua"
    write(folder .. "/" .. name, block.text)
    if marker.module then return "", 0 end
    return execute({ "scripts/flowlua", name }, folder)
  elseif block.language == "sh" then
    return execute({ "bash", "-euo", "pipefail", "-c", block.text }, folder)
  else
    local name = marker.file or "snippet.swift"
    if marker.file then flow.fs.mkdir((folder .. "/" .. name):match "^(.*)/") end
    write(folder .. "/" .. name, block.text)
    local argv = { "swiftc", "-typecheck", "-swift-version", "6", "-suppress-warnings" }
    table.move(module_flags, 1, #module_flags, #argv + 1, argv)
    local paths = swift_files(folder, name)
    table.move(paths, 1, #paths, #argv + 1, argv)
    return execute(argv, root)
  end
end

-- Returns the number of snippets that were run, and the texts that blocks should have.
function snippets.run(self, folder, module_flags, report)
  prepare(folder)
  local count, texts, printed = 0, {}, nil
  for _, block in ipairs(self.blocks) do
    local marker, language = block.marker, block.language
    if marker.source then
      local file <close> = assert(io.open(marker.source))
      texts[block] = file:read "a"
    elseif marker.output then
      texts[block] = execute({ "bin/flowlua", marker.output }, folder)
      count = count + 1
    elseif marker["not run"] then
      printed = nil
    elseif outputs[language] then
      if printed then
        texts[block] = printed
      else
        report(self.path, block.first, "a block of output without a snippet before it")
      end
    elseif language == "lua" or language == "sh" or language == "swift" then
      count = count + 1
      local status
      printed, status = run(block, folder, module_flags)
      local wanted = math.tointeger(tonumber(marker.status or 0))
      if status ~= wanted then
        report(self.path, block.first, ("the snippet ends with status %d, not %d:\n%s")
          :format(status, wanted, printed:gsub("\n$", "")))
      end
      -- Swift is compiled and not run.
      if language == "swift" then printed = nil end
    end
  end
  return count, texts
end

return snippets
