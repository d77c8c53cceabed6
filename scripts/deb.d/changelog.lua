-- Writes CHANGELOG.md, which is its standard input, as a changelog of Debian.
--
--   flowlua changelog.lua VERSION SECONDS CONTROL
--
-- VERSION is the program's, of which `-dev` is left out, SECONDS the time of the package, and
-- CONTROL the file with the maintainer. Changes that aren't released are those of a version with
-- the time in its name: one before VERSION or, if VERSION is released already, one after it. So a
-- release replaces a package that was made before it, and is replaced by one that is made later.
-- Days of releases are those of the time zone. Text of a section before its first part is left
-- out.
local version, seconds, control = arg[1]:gsub("%-dev$", ""), math.tointeger(arg[2]), arg[3]
local file <close> = assert(io.open(control))
local maintainer = assert(file:read "a":match "\nMaintainer: ([^\n]+)")

local WIDTH = 78

-- The sections: `version` and `seconds` of each, and its `parts`, which have a title and items.
local sections = {}
local items
for line in io.lines() do
  local name, rest = line:match "^## %[([^%]]+)%](.*)"
  local section = sections[#sections]
  if name then
    local year, month, day = rest:match "(%d+)-(%d+)-(%d+)"
    local time = year and os.time { year = year, month = month, day = day, hour = 12 }
    sections[#sections + 1] = {
      version = name ~= "Unreleased" and name or nil, seconds = time or seconds, parts = {},
    }
    items = nil
  elseif section and line:find "^### " then
    items = {}
    section.parts[#section.parts + 1] = { title = line:match "^### (.*)", items = items }
  elseif items and line:find "^%- " then
    items[#items + 1] = line:match "^%- (.*)"
  elseif items and #items > 0 and line:find "^  " then
    items[#items] = items[#items] .. " " .. line:match "^%s+(.*)"
  elseif items and line ~= "" then
    error(("CHANGELOG.md has a line that is no change: %q"):format(line))
  end
end
assert(#sections > 0, "CHANGELOG.md has no section")

local newest = sections[1]
if not newest.version then
  if #newest.parts == 0 and #sections > 1 then
    table.remove(sections, 1)
  elseif sections[2] and sections[2].version == version then
    newest.version = version .. os.date("!+%Y%m%d%H%M", seconds)
  else
    newest.version = version .. os.date("!~%Y%m%d%H%M", seconds)
  end
end

-- Prints a text with an indentation for its first line and one for the others.
local function wrap(text, first, others)
  local line, empty = first, true
  for word in text:gmatch "%S+" do
    if not empty and utf8.len(line .. " " .. word) > WIDTH then
      print(line)
      line, empty = others, true
    end
    line = line .. (empty and "" or " ") .. word
    empty = false
  end
  print(line)
end

for i, section in ipairs(sections) do
  if i > 1 then print() end
  print(("flowlua (%s) unstable; urgency=medium"):format(section.version))
  for _, part in ipairs(section.parts) do
    print(("\n  [ %s ]"):format(part.title))
    for _, item in ipairs(part.items) do wrap(item, "  * ", "    ") end
  end
  local date = os.date("!%a, %d %b %Y %H:%M:%S +0000", section.seconds)
  print(("\n -- %s  %s"):format(maintainer, date))
end
