-- Tests/scripts/Specification.md: the first lines of the script tests, by folder.
local specification = {}

-- The folders of Tests/scripts in the order of the page, each with a heading and a sentence.
local folders = {
  { "op", "Ops", "An op is defined once, declares its data and runs by a policy." },
  { "bucket", "Data", "The bucket of a run keeps values and logs every change." },
  { "flow", "Flows", "A flow runs its steps in order and reports what happened." },
  { "graph", "Graphs", "The ops of a graph start when their data is there." },
  { "limit", "Shared limits", "Ops, groups and code of a script and its workers share limits." },
  { "group", "Groups", "A group runs one op for each item of a list." },
  { "keep", "Kept runs", "A kept run continues where it stopped, and does nothing twice." },
  { "undo", "Undos", "A flow that fails undoes what had succeeded in it." },
  { "machine", "Machines", "A machine runs steps and follows the transitions between them." },
  { "task", "Tasks", "A task settles once, and its continuations run afterwards." },
  { "wait", "Waits", "Lua code waits anywhere without blocking other work." },
  { "stop", "Stops", "Timeouts, cancellation and signals end any code, waiting or busy." },
  { "worker", "Workers", "Ops and continuations can run on other threads." },
  { "remote", "Other nodes", "Ops and continuations can run on other nodes." },
  { "program", "Programs", "Programs read, write and end while the script continues." },
  { "ops", "Built-in ops", "Ops written in Swift run programs, access files, sleep and print." },
  { "csv", "CSV", "The module `flow.csv` reads and writes CSV." },
  { "http", "HTTP", "The module `flow.http` sends requests." },
  { "json", "JSON", "The module `flow.json` reads and writes JSON." },
  { "fs", "Files", "The module `flow.fs` works on files without blocking the script." },
  { "secret", "Secrets", "Marked values appear in no log and no message." },
  { "summary", "Summaries and events", "A run describes its course as text and as data." },
  { "view", "Reports and traces", "A run is shown as Markdown and as a trace." },
  { "progress", "Progress", "A tree on the terminal shows what runs execute now." },
  { "testing", "Tests of scripts", "The module `flow.testing` runs ops on a virtual clock." },
  { "cli", "The command line", "The program behaves like `lua5.4` and adds options." },
  { "attack", "Attacks", "Attacks of a hostile script are refused, stopped or harmless." },
  { "tools", "Development tools", "Debuggers and coverage tools work in all code of a script." },
  { "system", "Scarce resources", "Scripts survive missing memory, threads and descriptors." },
  { "fuzz", "Random tests", "Random input and long runs keep the guarantees of this page." },
}

-- A sentence as Markdown: the characters of markup outside code have no effect.
local function escaped(text)
  local parts, in_code = {}, false
  for part, mark in (text .. "\0"):gmatch "([^`\0]*)([`\0])" do
    if not in_code then part = part:gsub("[<*\\]", "\\%0"):gsub("%f[%w_]_+", function(underscores)
      return ("\\_"):rep(#underscores)
    end) end
    parts[#parts + 1] = part .. (mark == "`" and mark or "")
    if mark == "`" then in_code = not in_code end
  end
  return table.concat(parts)
end

local function sentence(path, report)
  local line = ""
  for each in io.lines(path) do
    line = each
    if not each:find "^#!" then break end
  end
  local text = line:match "^%-%- (%S.*%.)$"
  if not text then report(path, 1, "the first line isn't a sentence in a comment") end
  return text
end

-- The text of the page for the scripts with these paths below `root`, in this order.
function specification.page(root, paths, report)
  local items, known = {}, { lib = true }
  for _, folder in ipairs(folders) do
    known[folder[1]], items[folder[1]] = true, {}
  end
  for _, path in ipairs(paths) do
    local folder, name = path:sub(#root + 2):match "^([^/]+)/(.+)$"
    if not known[folder] then
      report(path, 1, "scripts/docs.d/specification.lua has no heading for this folder")
    elseif items[folder] then
      local text = sentence(path, report)
      local list = items[folder]
      if text then list[#list + 1] = ("- %s `%s`"):format(escaped(text), name) end
    end
  end
  local out = {
    "# Specification", "",
    "The guarantees that scripts can rely on, each proved by a test.", "",
    "<!-- Made of the first lines of Tests/scripts by scripts/docs: change those lines. -->", "",
    "## Overview", "",
    "Each sentence is the first line of a script in a folder of `Tests/scripts`; the name of the",
    "script follows it.",
  }
  for _, folder in ipairs(folders) do
    local name, title, summary = table.unpack(folder)
    if #items[name] == 0 then
      report(root .. "/" .. name, 1, "the page Specification has a heading, but there is no script")
    end
    for _, line in ipairs { "", "## " .. title, "", ("%s `%s/`"):format(summary, name), "" } do
      out[#out + 1] = line
    end
    table.move(items[name], 1, #items[name], #out + 1, out)
  end
  return table.concat(out, "\n") .. "\n"
end

return specification
