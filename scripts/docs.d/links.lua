-- Links inside the documentation lead to files, headings and articles that there are.
local page = require "page"
local links = {}

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

local function folder(path) return path:match "^(.*)/" or "." end

function links.check(pages, report)
  local count, articles, known = 0, {}, {}
  for _, each in ipairs(pages) do
    known[each.path] = each
    articles[each.path:match "([^/]+)%.md$"] = each
  end
  for _, each in ipairs(pages) do
    for _, link in ipairs(each.links) do
      local target = link.target
      if target:find "^%a+://" then goto continue end
      count = count + 1
      if link.article then
        -- `/FlowEngine/TestingOps` is an article of another module.
        local name, heading = target:gsub("^/%w+/", ""):match "^([^#]*)#?(.*)$"
        if not articles[name] then
          report(each.path, link.line, ("no article '%s'"):format(name))
        elseif heading ~= "" and target:find "^/" then
          report(each.path, link.line, "DocC can't link to a heading of another module")
        elseif heading ~= "" and not articles[name].anchors[heading:lower()] then
          report(each.path, link.line, ("no heading '%s' in article '%s'"):format(heading, name))
        end
        goto continue
      end
      do
        local file, heading = target:match "^([^#]*)#?(.*)$"
        local path = file == "" and each.path or folder(each.path) .. "/" .. file
        -- `a/../b` is `b`.
        path = path:gsub("^%./", "")
        while path:find "[^/]+/%.%./" do path = path:gsub("[^/]+/%.%./", "", 1) end
        if not exists(path) then
          report(each.path, link.line, ("dead link '%s'"):format(target))
        elseif heading ~= "" and path:find "%.md$" then
          local other = known[path] or page.read(path)
          if not other.anchors[heading] then
            report(each.path, link.line, ("no heading '#%s' in %s"):format(heading, path))
          end
        end
      end
      ::continue::
    end
  end
  return count
end

return links
