-- The work of scripts/raising, with the paths of Swift files as arguments.
local here = arg[0]:match "^(.*)/"

-- The functions that a list allows.
local function read_list(text)
  local allowed, problems, number = {}, {}, 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    local name, class, reason = line:match "^(luaL?_%w+) ([-mev])%s*(.*)$"
    if name then
      allowed[name] = true
      if class ~= "-" and reason == "" then
        problems[#problems + 1] = ("functions:%d: %s needs a reason"):format(number, name)
      end
    elseif line:find "%S" and not line:find "^#" then
      problems[#problems + 1] = ("functions:%d: no name and field: %s"):format(number, line)
    end
  end
  return allowed, problems
end

-- The names of Lua functions in a text of Swift that aren't allowed, without its comments and
-- strings; `seen` gets all of them.
local function check(path, text, allowed, seen)
  local problems, number = {}, 0
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    number = number + 1
    line = line:gsub('\\"', ""):gsub('"[^"]*"', '""'):gsub("//.*", "")
    for name in line:gmatch "%f[%w_]luaL?_%l[%w_]*" do
      seen[name] = true
      if not allowed[name] then
        problems[#problems + 1] = ("%s:%d: %s may raise: call it in C, protected"):format(
          path, number, name)
      end
    end
  end
  return problems
end

-- The checks find what they are there for.
do
  local listed, problems = read_list(
    "# text\nlua_type -\nlua_next e\nlua_settop e  a reason\nwhat\n")
  assert(table.concat(problems, "\n")
    == "functions:3: lua_next needs a reason\nfunctions:5: no name and field: what")
  local met = {}
  problems = check("a.swift",
    'lua_type(L, 1)\n// lua_error(L)\nlet a = "lua_error" + f(lua_error)\n'
    .. "x.luaL_ref(L, 1); lua_Integer(1); my_lua_error(L)", listed, met)
  assert(table.concat(problems, "\n") == "a.swift:3: lua_error may raise: call it in C, protected\n"
    .. "a.swift:4: luaL_ref may raise: call it in C, protected")
  assert(met.lua_type and met.lua_error and not met.lua_Integer)
end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local allowed, problems = read_list(read(here .. "/functions"))
local seen = {}
for _, path in ipairs(arg) do
  for _, problem in ipairs(check(path, read(path), allowed, seen)) do
    problems[#problems + 1] = problem
  end
end
for _, problem in ipairs(problems) do io.stderr:write("raising: ", problem, "\n") end
if #problems > 0 then os.exit(false) end
local count = 0
for _ in pairs(seen) do count = count + 1 end
print(("raising: Swift calls %d functions of Lua, and none that can raise"):format(count))
