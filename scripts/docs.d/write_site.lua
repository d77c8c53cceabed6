-- Writes the site of all pages into a folder:
--
--   flowlua scripts/docs.d/write_site.lua FOLDER [check]
--
-- With `check` it also looks at the site in Chromium, 1400 and 700 pixels wide, and asks the search
-- questions of users.
package.path = arg[0]:match "^(.*)/" .. "/?.lua;" .. package.path
local flow, fs = require "flow", require "flow.fs"
local page, site = require "page", require "site"

local folder, check = arg[1], arg[2] == "check"
local pages = {}
local listed = flow.exec {
  "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md",
}:await().stdout
for path in listed:gmatch "[^\n]+" do
  -- The glossary is a part of the Lua reference.
  local is_page = fs.exists(path) and path ~= "scripts/docs.d/glossary.md"
  if is_page then pages[#pages + 1] = page.read(path) end
end
local count = site.write(pages, folder, not check and "swift/documentation/index.html" or nil)
if not check then
  print(("docs: %d pages are in %s"):format(count, folder))
  return
end

local problems = {}
local function report(path, line, message)
  problems[#problems + 1] = ("%s:%d: %s"):format(path, line, message)
end
-- First the checks themselves: words that no page has, and a page that is too wide.
fs.write(folder .. "/wide.html", '<div style="width: 1000px">wide</div>')
site.check(folder, { { "nowhere", "Groups" } }, { "wide.html" }, report)
assert(#problems == 2 and problems[1]:find "not Groups" and problems[2]:find "in a window of 700",
  "the checks of the site find something else:\n" .. table.concat(problems, "\n"))
fs.remove(folder .. "/wide.html")

problems = {}
site.check(folder, site.questions, site.names(folder), report)
for _, problem in ipairs(problems) do io.stderr:write(problem, "\n") end
print(("docs: the site has %d pages; %d questions of %d find theirs"):format(
  count, #site.questions - #problems, #site.questions))
os.exit(#problems == 0 and 0 or 1, true)
