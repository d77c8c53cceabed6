-- As much of JSON as the examples read: no surrogate pairs.
local json = {}
local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local literals = { ["true"] = true, ["false"] = false }
local value

local function fail(text, at)
  error(("no JSON at byte %d: %s"):format(at, text:sub(at, at + 20)), 0)
end

local function string_at(text, at)
  local stop = at
  repeat stop = text:find('"', stop + 1, true) or fail(text, at)
  until #text:sub(at, stop - 1):match "\\*$" % 2 == 0
  local raw = text:sub(at + 1, stop - 1)
  raw = raw:gsub("\\u(%x%x%x%x)", function(digits) return utf8.char(tonumber(digits, 16)) end)
  return raw:gsub("\\(.)", function(letter) return escapes[letter] or letter end), stop + 1
end

-- The members between two brackets, each read by `member`.
local function members(text, at, close, member)
  at = text:match("^%s*()", at + 1)
  if text:sub(at, at) == close then return at + 1 end
  while true do
    at = text:match("^%s*()", member(at))
    if text:sub(at, at) == close then return at + 1 end
    at = text:match("^,%s*()", at) or fail(text, at)
  end
end

function value(text, at)
  local first = text:sub(at, at)
  if first == '"' then return string_at(text, at) end
  if first == "{" then
    local object = {}
    return object, members(text, at, "}", function(place)
      local key, colon = string_at(text, place)
      local begin = text:match("^%s*:%s*()", colon) or fail(text, colon)
      local item, stop = value(text, begin)
      object[key] = item
      return stop
    end)
  elseif first == "[" then
    local list = {}
    return list, members(text, at, "]", function(place)
      local item, stop = value(text, place)
      list[#list + 1] = item
      return stop
    end)
  end
  local word = text:match("^[%w.+-]+", at) or fail(text, at)
  if literals[word] == nil and word ~= "null" and not tonumber(word) then fail(text, at) end
  if tonumber(word) then return tonumber(word), at + #word end
  return literals[word], at + #word
end

-- Reads a text that is one value.
function json.decode(text)
  local result, stop = value(text, text:match "^%s*()")
  if text:find("%S", stop) then fail(text, stop) end
  return result
end

return json
