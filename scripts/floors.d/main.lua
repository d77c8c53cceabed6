-- The work of scripts/floors, with the names of the targets as arguments.
local here = arg[0]:match "^(.*)/"
package.path = here .. "/?.lua;" .. package.path
local graph = require "graph"

-- A language has a module: `read(folder, paths)` returns the uses, a list of { from = path,
-- line = number, name = what is used, to = path of the file that defines it }. Paths are relative
-- to the folder.
local languages = {
  C = { module = "c", pattern = "%.[ch]$" },
  Swift = { module = "swift", pattern = "%.swift$" },
}

require "self_test"()

-- The files below a folder that are there and not ignored.
local function paths_of(folder, pattern)
  local paths = {}
  local list <close> = assert(io.popen(
    ("git ls-files --cached --others --exclude-standard -- '%s'"):format(folder)))
  for path in list:lines() do
    local file <close> = io.open(path)
    if file and path:find(pattern) then paths[#paths + 1] = path:sub(#folder + 2) end
  end
  table.sort(paths)
  return paths
end

local failures = 0
for _, target in ipairs(arg) do
  local plan = graph.read_plan(here .. "/" .. target)
  local language = languages[plan.language]
    or error(("%s: no module reads the language %s"):format(target, plan.language))
  local paths = paths_of(plan.folder, language.pattern)
  local uses = require(language.module).read(plan.folder, paths)
  local problems = graph.check(plan, paths, uses)
  for _, problem in ipairs(problems) do io.stderr:write("floors: ", problem, "\n") end
  failures = failures + #problems
  if #problems == 0 then
    print(("floors: %s: %d files on %d floors, %s"):format(
      target, #paths, #plan.floors, graph.describe_circles(graph.circles(uses))))
  end
end
os.exit(failures == 0)
