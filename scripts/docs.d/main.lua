-- What scripts/docs does once the program is built.
local here = arg[0]:match "^(.*)/"
package.path = here .. "/?.lua;examples/lib/?.lua;" .. package.path
local flow = require "flow"
local annotations, bindings = require "annotations", require "bindings"
local links, page, pictures = require "links", require "page", require "pictures"
local snippets, symbols = require "snippets", require "symbols"

local check, scratch = os.getenv "CHECK" == "true", os.getenv "SCRATCH"
local catalogue = "Sources/FlowScripting/FlowScripting.docc"
local source = "Sources/FlowScripting/Help/flow.d.lua"

local problems = {}
local function report(path, line, message)
  problems[#problems + 1] = ("%s:%d: %s"):format(path, line, message)
end

local function read(path)
  local file <close> = io.open(path)
  return file and file:read "a"
end

-- Writes what is made, or says that it isn't up to date.
local function put(path, text, line)
  if read(path) == text then return end
  if check then
    report(path, line or 1, "isn't up to date: run scripts/docs")
  else
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    print("written: " .. path)
  end
end

local function lines_of(argv)
  local lines = {}
  for line in flow.exec(argv):await().stdout:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

require "self_test"(scratch, source)

-- The Lua reference, and whether it is about what there is.
local entries = annotations.read(source)
local more = annotations.read("Sources/FlowScripting/Help/flow.testing.d.lua")
table.move(more, 1, #more, #entries + 1, entries)
put(catalogue .. "/LuaReference.md", annotations.reference(entries))
local names = bindings.check(entries, source, report)

local count, documented = symbols.check(
  scratch .. "/symbols", { "FlowEngine", "LuaVM", "FlowScripting" }, report)

local pages = {}
for _, path in ipairs(lines_of {
  "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md",
}) do
  -- Only what is there: a file may have been removed but not yet committed.
  if read(path) then pages[#pages + 1] = page.read(path) end
end

-- The snippets of several pages at a time.
local module_flags = {}
for line in io.lines(scratch .. "/module-flags") do module_flags[#module_flags + 1] = line end
local SnippetsOp = flow.op("SnippetsOp", {
  needs = { page = "table" },
  gives = { count = "integer" },
  run = function(ctx)
    local self = ctx:get "page"
    local folder = ("%s/page-%d"):format(scratch, ctx.index)
    local ran, texts = snippets.run(self, folder, module_flags, report)
    for _, block in ipairs(self.blocks) do
      if texts[block] and texts[block] ~= block.text and check then
        report(self.path, block.first, "isn't what is printed: run scripts/docs")
      end
    end
    if not check then put(self.path, page.with(self, texts)) end
    ctx:set("count", ran)
  end,
})
local run = flow.new("pages")
  :add_grouped(SnippetsOp, { input = "pages", output = "counts", max_concurrent = 2 })
  :run { pages = pages }
run:await()
local snippet_count = 0
for _, each in ipairs(run.data.counts) do snippet_count = snippet_count + each end

-- `<!-- picture: docs/run.svg of FILE -->`: a terminal that shows what an example prints.
for _, each in ipairs(pages) do
  for number, line in ipairs(each.lines) do
    local path, example = line:match "^<!%-%- picture: (%S+) of (%S+) %-%->$"
    if path then
      local result = flow.exec(
        { os.getenv "FLOWLUA", "--virtual-clock", example }, { env = { TZ = "UTC" } })
      put(path, pictures.terminal("scripts/flowlua " .. example, result:await().stdout), number)
    end
  end
end

local link_count = links.check(pages, report)

for _, problem in ipairs(problems) do io.stderr:write(problem, "\n") end
print(("docs: %d of %d public Swift declarations documented, %d names and options of flow"):format(
  documented, count, names))
print(("docs: %d pages, %d snippets, %d links inside the documentation"):format(
  #pages, snippet_count, link_count))
if #problems > 0 then
  io.stderr:write(("docs: %d problems\n"):format(#problems))
  os.exit(1, true)
end
