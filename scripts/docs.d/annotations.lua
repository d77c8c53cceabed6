-- Reads annotations into a list of classes, aliases and functions, in the order of the text.
local annotations = {}

-- The type at the beginning of a text, and the text after it. Types contain no spaces except in
-- brackets, after commas and colons, and around `|`.
local function split_type(text)
  local depth, i = 0, 1
  while i <= #text do
    local c = text:sub(i, i)
    if c:find "[%(%[{<]" then depth = depth + 1 end
    if c:find "[%)%]}>]" then depth = depth - 1 end
    if c == " " and depth == 0 then
      local before, after = text:sub(i - 1, i - 1), text:sub(i + 1, i + 1)
      local goes_on = before:find "[:|,]" or after == "|" or text:sub(1, i - 1):find "async$"
      if not goes_on then break end
    end
    i = i + 1
  end
  return text:sub(1, i - 1), text:sub(i + 1)
end

function annotations.read(path)
  local entries, comment, open, number = {}, {}, nil, 0
  local pending = { params = {}, returns = {} }
  local function reset() comment, pending = {}, { params = {}, returns = {} } end
  local function add(entry)
    entry.doc, entry.line = comment, number
    entries[#entries + 1] = entry
    reset()
    return entry
  end
  for line in io.lines(path) do
    number = number + 1
    local tag, rest = line:match "^%-%-%-@(%a+) ?(.*)$"
    if tag == "class" then
      local name, parent = rest:match "^(%S-):%s*(%S+)$"
      name = (name or rest):gsub("<.*", "")
      open = add { kind = "class", name = name, parent = parent, fields = {} }
    elseif tag == "alias" then
      local name, type = rest:match "^(%S+) ?(.*)$"
      open = add { kind = "alias", name = name, type = type, values = {} }
    elseif tag == "field" then
      local name, text = rest:match "^(%[%w+%]) (.*)$"
      if not name then name, text = rest:match "^(%S+) (.*)$" end
      local type, about = split_type(text)
      open.fields[#open.fields + 1] = {
        name = name:gsub("%?$", ""), optional = name:sub(-1) == "?" or type:sub(-1) == "?",
        type = type, about = table.concat(comment, " ") .. about, line = number,
      }
      comment = {}
    elseif tag == "param" then
      local name, text = rest:match "^(%S+) (.*)$"
      local type, about = split_type(text)
      if name ~= "self" then
        pending.params[#pending.params + 1] = {
          name = name:gsub("%?$", ""), optional = name:sub(-1) == "?", type = type, about = about,
        }
      end
    elseif tag == "return" then
      local type, text = split_type(rest)
      local name, about = text:match "^(%S+) ?(.*)$"
      pending.returns[#pending.returns + 1] = { type = type, name = name, about = about or "" }
    elseif tag == "async" then
      pending.waits = true
    elseif tag == "deprecated" then
      pending.deprecated = rest
    elseif line:find "^%-%-%-|" then
      local value, about = line:match '^%-%-%-| (%S+) # (.*)$'
      open.values[#open.values + 1] = { value = value, about = about }
    elseif tag then
      -- Tags for type checkers only: generic, overload, meta.
      goto continue
    elseif line:find "^%-%-%-" then
      comment[#comment + 1] = line:sub(4)
    else
      local signature = line:match "^function (.*) end$"
      if signature then
        local owner, mark, name = signature:match "^(%w+)([.:])([%w_]+)%("
        pending.signature = signature
        local entry = pending
        entry.kind, entry.owner, entry.is_method, entry.name = "function", owner, mark == ":", name
        add(entry)
      end
      reset()
    end
    ::continue::
  end
  return entries
end

-- The entries of flow.d.lua, then those of the submodules' files beside it, in the order of their
-- names.
function annotations.read_all(path)
  local entries = annotations.read(path)
  local folder = path:match "^(.*)/"
  local files <close> = assert(io.popen("ls " .. folder .. "/flow.*.d.lua"))
  for part in files:lines() do
    if part ~= path then
      local more = annotations.read(part)
      table.move(more, 1, #more, #entries + 1, entries)
    end
  end
  return entries
end

local function one_line(lines) return (table.concat(lines, " "):gsub("%s+$", "")) end
local function cell(text) return (text:gsub("|", "\\|")) end
local function code(text) return "`" .. text .. "`" end

local function title(name) return (name:gsub("<.*", ""):gsub("^flow%.", "")) end
-- `flow.Task<T>` and the like lead to their sections.
local function link(name) return ("[%s](#%s)"):format(title(name), title(name):lower()) end

local function type_text(type, titles)
  local names = {}
  for name in type:gmatch "flow%.%a+" do
    if titles[name] and not names[name] then
      names[#names + 1], names[name] = name, true
    end
  end
  return cell(code(type)), names
end

local function fields_table(fields, titles, out)
  if #fields == 0 then return end
  out("| field | type | |\n|---|---|---|")
  for _, field in ipairs(fields) do
    local shown = type_text(field.type, titles)
    local about = field.about
    out(("| `%s` | %s | %s |"):format(field.name, shown, cell(about)))
  end
  out ""
end

local function function_text(entry, titles, out)
  out(("### `%s`\n"):format(entry.signature))
  out(one_line(entry.doc) .. "\n")
  if entry.deprecated then out("Deprecated: " .. entry.deprecated .. "\n") end
  for _, parameter in ipairs(entry.params) do
    local shown, names = type_text(parameter.type, titles)
    local see = {}
    for i, name in ipairs(names) do see[i] = link(name) end
    out(("- `%s`%s: %s%s%s"):format(
      parameter.name, parameter.optional and ", optional" or "", (shown:gsub("\\|", "|")),
      parameter.about ~= "" and " – " .. parameter.about or "",
      #see > 0 and " (" .. table.concat(see, ", ") .. ")" or ""))
  end
  for _, result in ipairs(entry.returns) do
    out(("- returns `%s`%s"):format(result.type, result.about ~= "" and ": " .. result.about or ""))
  end
  if entry.waits then out "- may wait" end
  out ""
end

-- The reference as a page of the catalogue, with the glossary at its end.
function annotations.reference(entries, glossary)
  local lines = {}
  local function out(text) lines[#lines + 1] = text end
  local classes, titles = {}, {}
  for _, entry in ipairs(entries) do
    if entry.kind ~= "function" then
      classes[entry.name], titles[entry.name] = entry, true
    end
  end
  -- The functions of `json` belong to the class `flow.JSON`.
  local by_variable = {}
  for name in pairs(classes) do
    if name ~= "flow" then by_variable[title(name):lower()] = name end
  end
  local functions = {}
  for _, entry in ipairs(entries) do
    if entry.kind == "function" then
      local owner = entry.owner
      if owner ~= "flow" then
        owner = assert(by_variable[owner:lower()], "no class for " .. entry.signature)
      end
      functions[owner] = functions[owner] or {}
      table.insert(functions[owner], entry)
    end
  end
  out "# The Lua reference\n"
  out "Every function, method, field and option of the module `flow` and its parts.\n"
  out "<!-- Generated from the annotations in Help by scripts/docs: edit those files. -->\n"
  out "## The module\n"
  out "```lua\nlocal flow = require \"flow\"\n```\n"
  local paragraph = {}
  for _, line in ipairs(classes.flow.doc) do paragraph[#paragraph + 1] = line end
  out(table.concat(paragraph, "\n") .. "\n")
  out("`flow.ops` has the ops written in Swift; see [Ops](#ops).\n")
  for _, entry in ipairs(functions.flow) do function_text(entry, titles, out) end
  local kinds = { {}, {}, {} }
  for _, entry in ipairs(entries) do
    if entry.kind == "alias" then
      table.insert(kinds[3], entry)
    elseif entry.kind == "class" and entry.name ~= "flow" then
      table.insert(functions[entry.name] and kinds[1] or kinds[2], entry)
    end
  end
  for _, entry in ipairs(kinds[1]) do
    out(("## %s\n"):format(title(entry.name)))
    out(one_line(entry.doc) .. "\n")
    if entry.parent then
      out(("It also has all members of %s.\n"):format(link(entry.parent)))
    end
    fields_table(entry.fields, titles, out)
    for _, method in ipairs(functions[entry.name]) do function_text(method, titles, out) end
  end
  for _, entry in ipairs(kinds[2]) do
    out(("## %s\n"):format(title(entry.name)))
    out(one_line(entry.doc) .. "\n")
    fields_table(entry.fields, titles, out)
    if entry.parent then
      out(("It also has the fields of %s.\n"):format(link(entry.parent)))
    end
  end
  for _, entry in ipairs(kinds[3]) do
    out(("## %s\n"):format(title(entry.name)))
    out(one_line(entry.doc) .. "\n")
    if #entry.values > 0 then
      out "| value | |\n|---|---|"
      for _, value in ipairs(entry.values) do
        out(("| `%s` | %s |"):format(value.value, cell(value.about)))
      end
      out ""
    else
      out(code(entry.type) .. "\n")
    end
  end
  return (table.concat(lines, "\n"):gsub("\n+$", "\n")) .. "\n" .. glossary
end

return annotations
