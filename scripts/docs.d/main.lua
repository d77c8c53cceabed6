-- The work of scripts/docs once the program is built.
local here = arg[0]:match "^(.*)/"
package.path = here .. "/?.lua;examples/lib/?.lua;" .. package.path
local flow = require "flow"
local annotations, bindings = require "annotations", require "bindings"
local comments, links, mentions = require "comments", require "links", require "mentions"
local page, phrases = require "page", require "phrases"
local shots = require "shots"
local snippets, symbols = require "snippets", require "symbols"
local specification = require "specification"
local targets = require "targets"

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

local module_flags = {}
for line in io.lines(scratch .. "/module-flags") do module_flags[#module_flags + 1] = line end

require "self_test"(scratch, source, module_flags)

-- The Lua reference, and whether it is about what there is.
local entries = annotations.read_all(source)
put(catalogue .. "/LuaReference.md",
  annotations.reference(entries, read(here .. "/glossary.md")))
local names = bindings.check(entries, source, report)

local modules = {
  "FlowBytes", "FlowLoop", "FlowEngine", "FlowHTTP", "LuaVM", "FlowScripting", "FlowNodes",
  -- Their additions to types of others.
  "FlowEngine@FlowBytes", "FlowEngine@FlowLoop", "FlowScripting@FlowEngine",
  "FlowScripting@LuaVM", "FlowNodes@FlowScripting", "LuaVM@FlowBytes",
}
local counts, documented, public = symbols.check(scratch .. "/symbols", modules, report)
-- All that programs can use, so that each change of it is seen in its commit.
put("scripts/docs.d/api.txt", table.concat(public.api, "\n") .. "\n")
local total, most, parts = 0, 1000, {}
for module, count in pairs(counts) do
  total = total + count
  parts[#parts + 1] = ("%s %d"):format(module, count)
end
table.sort(parts)
if total > most then
  report("scripts/docs.d/api.txt", 1, ("%d public declarations, of at most %d"):format(total, most))
end

-- The files of the repository with this pattern. One may be removed but not yet committed.
local function files(...)
  local paths = {}
  for _, path in ipairs(lines_of {
    "git", "ls-files", "--cached", "--others", "--exclude-standard", ...,
  }) do
    if read(path) then paths[#paths + 1] = path end
  end
  return paths
end

local built = catalogue .. "/HowItIsBuilt.md"
put(built, targets.fill(read(built), read "Package.swift"))
put("Tests/scripts/Specification.md",
  specification.page("Tests/scripts", files "Tests/scripts/*.lua", report))

local pages = {}
for _, path in ipairs(files "*.md") do
  pages[#pages + 1] = page.read(path)
  page.check(pages[#pages], report)
  if path:find "/LogFormats.md$" then
    bindings.check_kinds(entries, source, pages[#pages], report)
  end
end

local comment_count = comments.check(
  files "Sources/*.swift", here .. "/names.swift", scratch .. "/comments", module_flags, report)

-- The snippets of several pages at a time.
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

-- `<!-- picture: FILE.png of EXAMPLE -->`: the timeline of an example.
for _, each in ipairs(pages) do
  for number, line in ipairs(each.lines) do
    local name, example = line:match "^<!%-%- picture: (%S+)%.png of (%S+) %-%->$"
    if name then
      local file = scratch .. "/picture.html"
      local digest = shots.page(os.getenv "FLOWLUA", example, file) .. "\n"
      local is_current = read(name .. ".sha256") == digest
        and read(name .. ".png") and read(name .. "~dark.png")
      if not is_current and not check then shots.take(file, name) end
      put(name .. ".sha256", digest, number)
    end
  end
end

local link_count = links.check(pages, report)
local mention_count = mentions.check(pages, public, report)

-- Files whose prose has no refused phrases.
local prose = {
  "*.md", "scripts/install.d/flowlua.1", "*.d.lua", "Sources/LuaVM",
  "Sources/FlowLuaCLI", "Sources/FlowScripting", "Sources/FlowEngine", "Sources/FlowHTTP",
  "Sources/FlowBytes", "Sources/FlowLoop", "Sources/CFlowSystem", "Sources/CFlowLua",
  "Sources/CLua/shim.h", "Sources/CCurl", "Sources/CSQLite", "Sources/CNats",
  "Sources/FlowJournal", "Sources/FlowRemote", "Sources/FlowNodes", "Sources/FlowSystem",
  "Tests/*.swift", "Tests/*.lua", "Tests/*.[ch]", "examples/*.swift", "examples/*.lua",
  "scripts/*.lua", "scripts/*.sh", "scripts/*.swift", "scripts/*.[ch]",
}
-- The scripts themselves, which have no ending.
for _, path in ipairs(lines_of { "git", "ls-files", "scripts" }) do
  if path:find "^scripts/[%w-]+$" then prose[#prose + 1] = path end
end
-- Files that are generated from others, or wrong on purpose.
local unchecked = {
  ["LuaReference.md"] = true, ["self_test.lua"] = true,
}
local text_count = 0
for _, path in ipairs(lines_of {
  "git", "ls-files", "--cached", "--others", "--exclude-standard", table.unpack(prose),
}) do
  local is_text = not path:find "%.png$" and not path:find "%.sha256$"
  if is_text and read(path) and not unchecked[path:match "[^/]+$"] then
    phrases.check(path, report)
    text_count = text_count + 1
  end
end
assert(text_count > 0, "no file is checked for refused phrases")

for _, problem in ipairs(problems) do io.stderr:write(problem, "\n") end
print(("docs: %d of %d public Swift declarations documented, %d names and options of flow"):format(
  documented, total, names))
print("docs: public Swift declarations: " .. table.concat(parts, ", "))
print(("docs: %d pages, %d snippets, %d links inside the documentation"):format(
  #pages, snippet_count, link_count))
print(("docs: %d snippets in comments, %d public types with examples, %d names of Swift in prose")
  :format(comment_count, public.types, mention_count))
print(("docs: %d files without refused phrases"):format(text_count))
if #problems > 0 then
  io.stderr:write(("docs: %d problems\n"):format(#problems))
  os.exit(1, true)
end
