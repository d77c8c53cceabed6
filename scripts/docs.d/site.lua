-- The pages of the repository as a site: plain HTML with a search over all sections, which needs no
-- server.
--
-- cmark-gfm makes HTML of Markdown. Links between pages become links of the site; other files that
-- pages link to are copied. The list of pages at the side is the list of topics of the catalogue.
local flow, fs, json = require "flow", require "flow.fs", require "flow.json"
local page = require "page"
local site = {}

local here = "scripts/docs.d/"

-- Pages that most readers don't look for: the search has them after others.
local weights = {
  LuaReference = 0.5, ComingFromFlow = 0.4, HowItIsBuilt = 0.4, FlowScripting = 0.3,
  Embedding = 0.8, EmbeddingThreads = 0.6, EmbeddingData = 0.6,
  TestingOps = 0.4, Observability = 0.4,
  FlowEngine = 0.3, FlowLoop = 0.3, LuaVM = 0.3,
  CONTRIBUTING = 0.3, CHANGELOG = 0.1,
  ["Tests-scripts-Specification"] = 0.1, ["Tests-scripts-README"] = 0.1,
  ["examples-job-server-README"] = 0.3, ["examples-rules-README"] = 0.3,
}

-- The file of a page without its ending: `README.md` is the first page, an article has its name.
local function name_of(path)
  if path == "README.md" then return "index" end
  return path:match "%.docc/(.+)%.md$" or path:match "^(.+)%.md$":gsub("/", "-")
end

local entities = { ["&lt;"] = "<", ["&gt;"] = ">", ["&quot;"] = '"', ["&amp;"] = "&" }
local function plain(html)
  return (html:gsub("<[^>]*>", ""):gsub("&%l+;", entities):gsub("%s+", " "))
end
local marks = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }
local function escaped(text) return (text:gsub('[&<>"]', marks)) end

-- A line of Markdown whose text, without code, is changed by a function.
local function outside_code(line, change)
  local parts, at = {}, 1
  while true do
    local first, last = line:find("`+", at)
    local ticks = first and line:sub(first, last)
    local close, after = nil, nil
    if first then close, after = line:find(ticks, last + 1, true) end
    if not close then break end
    local code = line:sub(first, after)
    -- ``ScriptHost/call(_:_:)`` is a link of DocC.
    if #ticks == 2 then code = code:gsub("/", "."):gsub("%->_", "") end
    parts[#parts + 1] = change(line:sub(at, first - 1)) .. code
    at = after + 1
  end
  return table.concat(parts) .. change(line:sub(at))
end

-- `a/b/../c` is `a/c`.
local function resolved(folder, path)
  path = (folder .. path):gsub("^%./", "")
  local count
  repeat path, count = path:gsub("[^/]+/%.%./", "", 1) until count == 0
  return path
end

local Site = {}
Site.__index = Site

-- The address of a link on a page.
function Site:address(from, target)
  if target:find "^%a+:" or target:find "^#" then return target end
  local file, heading = target:match "^([^#]*)(#?.*)$"
  local path = resolved(from:match "^.*/" or "", file)
  if self.by_path[path] then return self.by_path[path].name .. ".html" .. heading end
  if not fs.exists(path) or fs.stat(path).type == "directory" then return target end
  local is_picture = path:find "%.png$"
  local copy = is_picture and path:match "[^/]+$" or "files/" .. path:gsub("/", "-") .. ".txt"
  self.copies[path] = copy
  return copy
end

function Site:article(target)
  local name, heading = target:match "([^/#]+)(#?.*)$"
  local other = assert(self.by_name[name], "no article " .. target)
  return ("[%s](%s.html%s)"):format(other.title, name, heading:lower())
end

function Site:markdown(each)
  local lines, in_code = {}, false
  for _, line in ipairs(each.source.lines) do
    if line:find "^%s*```" then
      in_code = not in_code
    elseif not in_code then
      line = line:gsub("<!%-%-.-%-%->", "")
      line = outside_code(line, function(text)
        text = text:gsub("<doc:([^>]+)>", function(target) return self:article(target) end)
        text = text:gsub("%]%(([^)%s]+)%)", function(target)
          return "](" .. self:address(each.path, target) .. ")"
        end)
        return (text:gsub('(src%a*)="([^"]+)"', function(attribute, target)
          return ('%s="%s"'):format(attribute, self:address(each.path, target))
        end))
      end)
    end
    lines[#lines + 1] = line
  end
  return table.concat(lines, "\n") .. "\n"
end

-- Headings get the ids that links use; tables may scroll by themselves.
local function finished(html)
  html = html:gsub("<h(%d)>(.-)</h%d>", function(level, inner)
    local id = page.anchor(plain(inner))
    return ('<h%s id="%s">%s <a class="anchor" href="#%s" aria-label="Link">#</a></h%s>'):format(
      level, escaped(id), inner, escaped(id), level)
  end)
  return (html:gsub("<table>", '<div class="table"><table>'):gsub("</table>", "</table></div>"))
end

-- The sections of a page for the search: before the first heading, and from each h2 and h3 on.
local function sections(each, html)
  local list, open = {}, { id = "", title = each.title }
  local at = 1
  while open do
    local first, last, id, title = html:find(
      '<h[23] id="([^"]*)">(.-) <a class="anchor".-</h[23]>', at)
    local text = html:sub(at, (first or 0) - 1):gsub("<h1.-</h1>", "")
    list[#list + 1] = { open.id, open.title, plain(text) }
    open = first and { id = id, title = plain(title) }
    at = (last or 0) + 1
  end
  return list
end

function Site:navigation(current)
  local function link(name, title)
    local mark = name == current.name and ' aria-current="page"' or ""
    return ('<a href="%s.html"%s>%s</a>'):format(name, mark, escaped(title))
  end
  local out = { link("index", "Home") }
  for _, line in ipairs(self.by_name.FlowScripting.source.lines) do
    local title, article = line:match "^### (.*)$", line:match "^%- <doc:(%w+)>"
    if title then out[#out + 1] = "<h2>" .. escaped(title) .. "</h2>" end
    if article then out[#out + 1] = link(article, self.by_name[article].title) end
  end
  if self.api then
    out[#out + 1] = ('<a href="%s">Swift declarations, on a web server</a>'):format(self.api)
  end
  return table.concat(out, "\n")
end

local frame = [[
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<link rel="stylesheet" href="site.css">
<script src="index.js" defer></script>
<script src="site.js" defer></script>
</head>
<body>
<header>
<a class="name" href="index.html">flowlua</a>
<input id="search" type="search" placeholder="Search all pages (/)" aria-label="Search all pages"
  autocomplete="off">
<a class="all" href="#pages">All pages</a>
</header>
<ol id="results" hidden></ol>
<div class="columns">
<main>
%s</main>
<nav id="pages" aria-label="Pages">
%s
</nav>
</div>
</body>
</html>
]]

-- Writes the site of these pages, as page.read returns them, into a folder. `api` is the address of
-- the declarations of Swift, if they are there.
function site.write(pages, folder, api)
  local self = setmetatable({ by_path = {}, by_name = {}, copies = {}, api = api }, Site)
  local list = {}
  for _, source in ipairs(pages) do
    local name = name_of(source.path)
    local title
    for _, line in ipairs(source.lines) do
      title = title or line:match "^# (.*)$"
    end
    title = assert(title, source.path):gsub("`", "")
    local each = { path = source.path, source = source, name = name, title = title }
    list[#list + 1], self.by_path[source.path], self.by_name[name] = each, each, each
  end
  fs.mkdir(folder .. "/files")
  local index = {}
  for _, each in ipairs(list) do
    local made = flow.exec(
      { "cmark-gfm", "--unsafe", "--extension", "table", "--extension", "autolink" },
      { stdin = self:markdown(each) }):await()
    local html = finished(made.stdout)
    local title = each.name == "index" and "flowlua" or each.title .. " – flowlua"
    fs.write(("%s/%s.html"):format(folder, each.name), frame:format(
      escaped(title), html, self:navigation(each)))
    index[#index + 1] = {
      page = each.name, title = each.title, weight = weights[each.name] or 1,
      sections = sections(each, html),
    }
  end
  for path, copy in pairs(self.copies) do fs.copy(path, folder .. "/" .. copy) end
  fs.write(folder .. "/index.js", "const pages = " .. json.encode(index) .. ";\n")
  for _, name in ipairs { "site.css", "site.js" } do
    fs.copy(here .. name, folder .. "/" .. name)
  end
  return #list
end

-- Questions of users, and pages: the search has to show one of them among its first three results.
site.questions = {
  { "run three things at once and stop when one fails", "OpsAndFlows", "Cookbook", "index" },
  { "pass arguments to a script", "Commands", "Cookbook", "index" },
  { "see what a run did last night", "SeeingARun", "Cookbook", "Operating", "index" },
  { "find and delete what is kept", "Operating", "KeepingAndUndoing", "index" },
  { "replace HTTP in a test", "Testing" },
  { "what happens at Ctrl-C", "Operating", "CommandLine" },
  { "one limit for two groups", "Groups", "Cookbook" },
  { "run it under systemd", "Operating" },
  { "run it by cron", "Operating" },
  { "how to upgrade", "Operating", "index" },
  { "dispatcher", "Groups", "LuaReference" },
  { "share code between scripts", "Operating", "Cookbook", "index" },
  { "debug an op", "Testing", "Cookbook" },
  { "run on three hosts", "OtherNodes" },
  { "embed in a Swift server", "Embedding", "EmbeddingThreads" },
  { "what does it cost", "Comparison", "index" },
}

-- The results of Chromium for commands of scripts/lib/browser.py.
local function browse(commands)
  local lines, results = {}, {}
  for i, command in ipairs(commands) do lines[i] = json.encode(command) end
  local output = flow.exec({ "python3", "scripts/lib/browser.py" },
    { stdin = table.concat(lines, "\n"), timeout = 300 }):await().stdout
  for line in output:gmatch "[^\n]+" do results[#results + 1] = json.decode(line) end
  assert(#results == #commands, "the browser has given other results")
  return results
end

-- The names of the pages in a folder.
function site.names(folder)
  local names = {}
  for i, path in ipairs(fs.list(folder, { match = "*.html" })) do
    names[i] = path:match "([^/]+)$"
  end
  return names
end

-- Looks at the site in Chromium: each question finds its page, no page is wider than the window.
function site.check(folder, questions, names, report)
  local commands = {}
  local function add(...) commands[#commands + 1] = { ... } end
  add("size", 1400, 1000)
  add("open", ("file://%s/index.html"):format(folder))
  add("wait", "typeof search === 'function'")
  local before = #commands
  for _, question in ipairs(questions) do
    add("evaluate", ("search(%s).slice(0, 3).map(each => each.page).join(' ')"):format(
      json.encode(question[1])))
  end
  for _, name in ipairs(names) do
    add("open", ("file://%s/%s"):format(folder, name))
    for _, width in ipairs { 1400, 700 } do
      add("size", width, 1000, width == 700)
      add("evaluate", "document.documentElement.scrollWidth")
    end
  end
  local results = browse(commands)
  for i, question in ipairs(questions) do
    local is_found = false
    for name in results[before + i]:gmatch "%S+" do
      for j = 2, #question do is_found = is_found or name == question[j] end
    end
    if not is_found then
      report(here .. "site.lua", 1, ("the search for '%s' finds %s, not %s"):format(
        question[1], results[before + i], table.concat(question, " or ", 2)))
    end
  end
  for i, command in ipairs(commands) do
    local width = command[1] == "size" and command[2]
    if width and i > before and results[i + 1] > width then
      local name = commands[width == 1400 and i - 1 or i - 3][2]
      report(name, 1, ("is %g pixels wide in a window of %d"):format(results[i + 1], width))
    end
  end
end

return site
