-- Which file of C uses which other: by the functions and variables that it names, and by its
-- includes.
local c = {}

-- The tokens of a text, without comments, strings and lines of the preprocessor: names and single
-- other characters, with `->` as one token. Also its includes in quotes.
function c.tokens(text)
  local tokens, includes = {}, {}
  local at, line = 1, 1
  local function skip(last)
    for _ in text:sub(at, last):gmatch "\n" do line = line + 1 end
    at = last + 1
  end
  local function find_end(plain_end)
    local _, last = text:find(plain_end, at + 2, true)
    return last or #text
  end
  while at <= #text do
    local char = text:sub(at, at)
    local two = text:sub(at, at + 1)
    if char:find "%s" then
      skip(select(2, text:find("^%s+", at)))
    elseif two == "//" then
      skip((text:find("\n", at, true) or #text + 1) - 1)
    elseif two == "/*" then
      skip(find_end "*/")
    elseif char == '"' or char == "'" then
      local last = at + 1
      while last < #text and text:sub(last, last) ~= char do
        last = last + (text:sub(last, last) == "\\" and 2 or 1)
      end
      skip(last)
    elseif char == "#" then
      local last = at
      repeat
        last = text:find("\n", last + 1, true) or #text + 1
      until text:sub(last - 1, last - 1) ~= "\\"
      local name = text:sub(at, last - 1):match '^#%s*include%s*"([^"]+)"'
      if name then includes[#includes + 1] = { name = name, line = line } end
      skip(last - 1)
    else
      local last = select(2, text:find("^[%w_]+", at)) or (two == "->" and at + 1 or at)
      tokens[#tokens + 1] = { text = text:sub(at, last), line = line }
      skip(last)
    end
  end
  return tokens, includes
end

local function is_name(token) return token and token.text:find "^[%a_]" end

-- Where the parenthesis at an index is closed.
local function closing(tokens, index)
  local depth = 0
  for i = index, #tokens do
    if tokens[i].text == "(" then depth = depth + 1 end
    if tokens[i].text == ")" then depth = depth - 1 end
    if depth == 0 then return i end
  end
  return #tokens
end

local no_variable = {
  typedef = true, struct = true, enum = true, union = true, extern = true, _Static_assert = true,
}

-- The names that a text defines at its top: a table from names to "shared" or "own" (static), and
-- the names that are used inside of braces, with their lines. Declarations define nothing.
function c.analyse(text)
  local tokens, includes = c.tokens(text)
  local defined, used = {}, {}
  local depth, index = 0, 1
  local first, static, name, ended
  local function begin() first, static, name, ended = nil, false, nil, false end
  begin()
  while index <= #tokens do
    local token = tokens[index]
    local word = token.text
    local follower = tokens[index + 1] and tokens[index + 1].text
    if word == "{" then
      depth = depth + 1
    elseif word == "}" then
      depth = depth - 1
      -- The end of a function, or of a type or value, which ends at its semicolon.
      if depth == 0 and first == nil then begin() end
    elseif depth > 0 or (ended and word ~= ";") then
      -- Names after these, and those within types, are of fields.
      local before = tokens[index - 1] and tokens[index - 1].text
      if is_name(token) and before ~= "." and before ~= "->" and not no_variable[first] then
        used[#used + 1] = { name = word, line = token.line, is_call = follower == "(" }
      end
    elseif word == ";" then
      if name then defined[name] = static and "own" or "shared" end
      begin()
    elseif word == "__attribute__" then
      index = closing(tokens, index + 1)
    elseif is_name(token) and follower == "(" then
      local last = closing(tokens, index + 1)
      local after = tokens[last + 1] and tokens[last + 1].text
      if after == "{" then
        defined[word] = static and "own" or "shared"
        begin()
      else
        first, name = first or word, nil
      end
      index = last
    elseif is_name(token) then
      first = first or word
      if word == "static" then static = true end
      if not no_variable[first] then name = word end
    elseif word == "=" or word == "[" then
      -- The value, or the size, follows: the name stands before.
      ended = true
    end
    index = index + 1
  end
  return { defined = defined, used = used, includes = includes }
end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- The uses among files, from their texts by path.
function c.uses(texts)
  local files, home, by_base = {}, {}, {}
  local paths = {}
  for path, text in pairs(texts) do
    paths[#paths + 1] = path
    files[path] = c.analyse(text)
    by_base[path:match "[^/]+$"] = path
  end
  table.sort(paths)
  for _, path in ipairs(paths) do
    local is_header = path:find "%.h$"
    for name, kind in pairs(files[path].defined) do
      -- A static function of a header belongs to all that include it.
      if kind == "shared" or is_header then home[name] = path end
    end
  end
  local uses = {}
  for _, path in ipairs(paths) do
    local file = files[path]
    for _, include in ipairs(file.includes) do
      local to = by_base[include.name:match "[^/]+$"]
      if to and to ~= path then
        uses[#uses + 1] = { from = path, to = to, line = include.line, name = include.name }
      end
    end
    for _, use in ipairs(file.used) do
      local to = home[use.name]
      -- A variable may have the name of a function in a header that it doesn't see.
      local is_meant = to and to ~= path and not file.defined[use.name]
        and (use.is_call or not to:find "%.h$")
      if is_meant then
        uses[#uses + 1] = { from = path, to = to, line = use.line, name = use.name }
      end
    end
  end
  return uses
end

function c.read(folder, paths)
  local texts = {}
  for _, path in ipairs(paths) do texts[path] = read(folder .. "/" .. path) end
  return c.uses(texts)
end

return c
