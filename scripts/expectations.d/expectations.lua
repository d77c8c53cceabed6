-- Reads the names of files of tests, and finds tests that expect nothing.
local EXPECTS = {
  "#expect", "#require", "Issue%.record", "confirmation%(", "%f[%w_]assert%(", "%f[%w_]error%(",
  "%.expect%(",
}
-- The last ones are functions of Tests/scripts/lib that assert.
local SCRIPT_EXPECTS = {
  "%-%- expect%-", "%f[%w_]assert%f[%W]", "check%.", "error%(", "host%.same_",
  'require%("hostile"%)%.stop',
}
local DECLARES = { "%f[%w]func%f[%W]", "\n%s*}\n", "\n%s*let ", "\n%s*var " }

local function has_any(text, patterns)
  for _, pattern in ipairs(patterns) do
    if text:find(pattern) then return true end
  end
  return false
end

-- The text without comments, and in strings only words and what a call of Lua needs: braces are
-- those of the code.
local function without_strings(text)
  local function words(inner) return '"' .. inner:gsub("[^%w_(.%s]", "") .. '"' end
  text = text:gsub('#*"""(.-)"""#*', words):gsub('#"(.-)"#', words):gsub('\\"', "")
  return (text:gsub('"([^"\n]*)"', words):gsub("//[^\n]*", ""))
end

local functions, tests, problems, scripts = {}, {}, {}, 0
for path in io.lines() do
  local file <close> = assert(io.open(path, "rb"))
  local text = file:read "a"
  if path:find "%.lua$" then
    if not path:find "^Tests/scripts/lib/" then
      scripts = scripts + 1
      if not has_any(text, SCRIPT_EXPECTS) then
        problems[#problems + 1] = path .. ": the script expects nothing"
      end
    end
  else
    text = without_strings(text)
    for position, name in text:gmatch "()%f[%w]func ([%w_]+)" do
      local body = text:match("^[^{]*(%b{})", position)
      if body then
        functions[name] = functions[name] or {}
        table.insert(functions[name], body)
        -- Its attributes stand between the declaration before and its name.
        local before = text:sub(math.max(1, position - 4000), position - 1)
        local attributes = before:match ".*(@Test.-)$"
        if attributes and not has_any(attributes, DECLARES) then
          tests[#tests + 1] = { path = path, name = name, body = body }
        end
      end
    end
  end
end

-- Functions of a name expect something if all of them do, by themselves or by what they call.
local expecting = {}
local function expects(body, own)
  if has_any(body, EXPECTS) then return true end
  for called in body:gmatch "([%w_]+)%s*[({]" do
    if called ~= own and expecting[called] then return true end
  end
  return false
end
local found
repeat
  found = false
  for name, bodies in pairs(functions) do
    local all = not expecting[name]
    for _, body in ipairs(bodies) do all = all and expects(body, name) end
    if all then
      expecting[name] = true
      found = true
    end
  end
until not found

for _, test in ipairs(tests) do
  if not expects(test.body, test.name) then
    problems[#problems + 1] = ("%s: the test %s expects nothing"):format(test.path, test.name)
  end
end
table.sort(problems)
for _, problem in ipairs(problems) do print(problem) end
if #problems > 0 then os.exit(1) end
print(("expectations: %d tests and %d scripts, each expects something"):format(#tests, scripts))
