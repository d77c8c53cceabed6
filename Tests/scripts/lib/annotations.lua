-- The annotations of the module: parameters of functions and methods, fields of classes.
--
--   functions["flow.op"], functions["Task:wait"] = { { name = "timeout", type = "number" }, … }, result = type
--   classes["flow.OpOptions"] = { parent = "flow.PolicyOptions", { name = "doc", type = "string" }, … }
--   aliases["flow.Data"] = type
local annotations = { functions = {}, classes = {}, aliases = {} }

-- The type at the beginning of a text: it ends at the first space that belongs to no parenthesis and
-- follows no colon or comma: `async fun(a: any): boolean, string?` is one.
local function leading_type(text)
  text = text:gsub("async ", "")
  local depth = 0
  for i = 1, #text do
    local c = text:sub(i, i)
    if c:find "[%(<{]" then depth = depth + 1 end
    if c:find "[%)>}]" then depth = depth - 1 end
    if c == " " and depth == 0 and not text:sub(1, i - 1):find "[:,]$" then return text:sub(1, i - 1) end
  end
  return text
end

-- Splits `A|B` where the bar belongs to no parenthesis.
function annotations.alternatives(type)
  local list, depth, begin = {}, 0, 1
  for i = 1, #type + 1 do
    local c = type:sub(i, i)
    if c:find "[%(<{]" then depth = depth + 1 end
    if c:find "[%)>}]" then depth = depth - 1 end
    if c == "" or c == "|" and depth == 0 then
      list[#list + 1] = type:sub(begin, i - 1)
      begin = i + 1
    end
  end
  return list
end

local parameters, result, alias, class = {}, nil, nil, nil
for line in assert(io.lines((os.getenv "FLOWLUA_ROOT" or ".") .. "/Sources/FlowScripting/Help/flow.d.lua")) do
  local tag, rest = line:match "^%-%-%-@(%a+) ?(.*)$"
  local choice = line:match "^%-%-%-| (%S+)"
  if tag == "class" then
    local name, parent = rest:match "^([%w.]+)[^:]*:?%s*([%w.]*)"
    class = { parent = parent ~= "" and parent or nil }
    annotations.classes[name] = class
  elseif tag == "field" then
    local name, kind = rest:match "^(%S+) (.*)$"
    if not name:find "^%[" then class[#class + 1] = { name = name:gsub("%?", ""), type = leading_type(kind) } end
  elseif tag == "alias" then
    alias, kind = rest:match "^(%S+) ?(.*)$"
    annotations.aliases[alias] = leading_type(kind)
  elseif choice and alias then
    local before = annotations.aliases[alias]
    annotations.aliases[alias] = before == "" and choice or before .. "|" .. choice
  elseif tag == "param" then
    local name, kind = rest:match "^(%S+) (.*)$"
    if name ~= "self" then
      parameters[#parameters + 1] = { name = name:gsub("%?", ""), type = leading_type(kind) }
    end
  elseif tag == "return" and not result then
    result = leading_type(rest)
  elseif line:find "^function " then
    parameters.result = result
    annotations.functions[line:match "^function ([%w_.:]+)"] = parameters
    parameters, result = {}, nil
  end
  if not tag and not choice then alias = nil end
end

-- The fields of a class, those of its parents included.
function annotations.fields(name)
  local all, at = {}, annotations.classes[name]
  while at do
    for _, field in ipairs(at) do all[#all + 1] = field end
    at = annotations.classes[at.parent]
  end
  return all
end

return annotations
