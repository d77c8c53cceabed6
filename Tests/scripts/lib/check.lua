-- Assertions of the script tests. Each raises at the line of the test that calls it.
local check = {}

local function show(value)
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

-- Whether values are the same: NaN is NaN, an integer isn't a float, and the sign of a zero counts.
local function same(a, b)
  if math.type(a) ~= math.type(b) then return false end
  if a ~= a and b ~= b then return true end
  if a == 0 and math.type(a) == "float" then return rawequal(a, b) and 1 / a == 1 / b end
  return rawequal(a, b)
end

function check.equal(actual, expected, what)
  if not same(actual, expected) then
    error(("%s: expected %s, got %s"):format(
      what or "value", show(expected), show(actual)), 2)
  end
end

-- Compares lists, and tables of tables.
function check.same(actual, expected, what)
  what = what or "value"
  if type(actual) ~= "table" or type(expected) ~= "table" then
    if not same(actual, expected) then
      error(("%s: expected %s, got %s"):format(what, show(expected), show(actual)), 2)
    end
    return
  end
  for key, value in pairs(expected) do
    check.same(actual[key], value, ("%s[%s]"):format(what, show(key)))
  end
  for key in pairs(actual) do
    if expected[key] == nil then error(("%s has an extra %s"):format(what, show(key)), 2) end
  end
end

-- Each part occurs in the text, as it stands.
function check.contains(text, ...)
  for _, part in ipairs { ... } do
    if not tostring(text):find(part, 1, true) then
      error(("%s isn't in:\n%s"):format(show(part), tostring(text)), 2)
    end
  end
end

-- Fails unless a text matches a pattern of Lua.
function check.match(text, pattern)
  if not text:find(pattern) then error(("%s doesn't match %s"):format(text, pattern), 2) end
end

-- An ASCII text as lines of the log show it: without control characters.
function check.on_one_line(text)
  local names = { ["\t"] = "\\t", ["\n"] = "\\n", ["\r"] = "\\r" }
  return (text:gsub("%c", function(c) return names[c] or ("\\x%02X"):format(c:byte()) end))
end

function check.lacks(text, ...)
  for _, part in ipairs { ... } do
    if text:find(part, 1, true) then error(("%s is in:\n%s"):format(show(part), text), 2) end
  end
end

-- Says that the script, or a part of it, can't be tested here, and why. CI fails when scripts/check.d/skips doesn't name it.
function check.skip(reason)
  print(("skipped: %s: %s"):format(arg[0]:match "Tests/scripts/(.*)" or arg[0], reason))
end

-- Calls fn, which must raise; the parts occur in the error's text. Returns the error.
function check.raises(fn, ...)
  local ok, raised = pcall(fn)
  if ok then error("nothing was raised", 2) end
  for _, part in ipairs { ... } do
    if not tostring(raised):find(part, 1, true) then
      error(("%s isn't in the error: %s"):format(show(part), tostring(raised)), 2)
    end
  end
  return raised
end

-- Misuse: fn raises an error of kind `usage` that begins with the place of fn and names the
-- function; the parts, words like an argument's number or a type, occur in it.
function check.usage(fn, name, ...)
  local ok, raised = pcall(fn)
  if ok then error(("misuse of '%s' raised nothing"):format(name), 2) end
  local text = tostring(raised)
  if type(raised) ~= "table" and type(raised) ~= "userdata" or raised.kind ~= "usage" then
    error("not an error of kind usage: " .. text, 2)
  end
  local place = debug.getinfo(fn, "S")
  local file, line = text:match("^(.-%.lua):(%d+): ")
  line = tonumber(line)
  if file ~= place.short_src or line < place.linedefined or line > place.lastlinedefined then
    error(("doesn't begin with %s:%d: %s"):format(place.short_src, place.linedefined, text), 2)
  end
  for _, part in ipairs { name, ... } do
    if not text:find(part, 1, true) then
      error(("%s isn't in the error: %s"):format(show(part), text), 2)
    end
  end
  return raised
end

-- A summary with T in place of the times.
function check.masked(summary)
  return (summary:gsub("%d%d?:%d%d:%d%d [AP]M", "T"))
end

-- Compares a run's whole summary.
function check.summary(run, expected)
  local actual = check.masked(run:summary())
  if actual ~= expected then
    error(("expected:\n%s\ngot:\n%s"):format(expected, actual), 2)
  end
end

return check
