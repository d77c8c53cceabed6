-- Which file of Swift uses which other: by the types that it names. Members aren't followed: an
-- extension may belong to a higher floor than its type.
local swift = {}

-- The text without comments and string literals, but with interpolated code. Line ends stay, so
-- that lines keep their numbers.
function swift.code(text)
  local out, at = {}, 1
  local function blank(part) return (part:gsub("[^\n]", " ")) end
  -- Reads a literal whose quotes stand at `from`; returns its code and where it ends.
  local read_code
  local function literal(from)
    local hashes = text:match("^#*", from)
    local quote = text:match('^"""', from + #hashes) or '"'
    local close, escape = quote .. hashes, "\\" .. hashes
    local i, parts = from + #hashes + #quote, {}
    while i <= #text do
      if text:sub(i, i + #close - 1) == close then return table.concat(parts), i + #close end
      if text:sub(i, i + #escape - 1) == escape then
        i = i + #escape
        if text:sub(i, i) == "(" then
          local code, after = read_code(i + 1, ")")
          parts[#parts + 1] = " " .. code .. " "
          i = after
        else
          i = i + 1
        end
      else
        if text:sub(i, i) == "\n" then parts[#parts + 1] = "\n" end
        i = i + 1
      end
    end
    return table.concat(parts), i
  end
  -- Reads code up to the parenthesis that closes it, or to the end.
  function read_code(from, closing)
    local parts, i, depth = {}, from, 0
    while i <= #text do
      local char, two = text:sub(i, i), text:sub(i, i + 1)
      if two == "//" then
        i = text:find("\n", i, true) or #text + 1
      elseif two == "/*" then
        local last = select(2, text:find("*/", i + 2, true)) or #text
        parts[#parts + 1] = blank(text:sub(i, last))
        i = last + 1
      elseif char == '"' or text:find('^#+"', i) then
        local code, after = literal(i)
        parts[#parts + 1] = code
        i = after
      else
        if char == "(" then depth = depth + 1 end
        if char == ")" then
          if depth == 0 and closing then return table.concat(parts), i + 1 end
          depth = depth - 1
        end
        parts[#parts + 1] = char
        i = i + 1
      end
    end
    return table.concat(parts), i
  end
  out[1] = read_code(at)
  return out[1]
end

local declares = {
  class = true, struct = true, enum = true, protocol = true, actor = true, typealias = true,
  associatedtype = true,
}

-- The types that a file declares at its top, those it declares within with generic parameters, and
-- the names with a capital that it uses, with their lines.
function swift.analyse(text)
  local code = swift.code(text)
  local top, own, used = {}, {}, {}
  local depth, line, last, before = 0, 1, nil, nil
  local at = 1
  while at <= #code do
    local char = code:sub(at, at)
    local word = code:match("^[%a_][%w_]*", at)
    if word then
      if declares[last] then
        if depth == 0 then top[word] = true else own[word] = true end
        last = word
      else
        if word:find "^%u" and before ~= "." then used[#used + 1] = { name = word, line = line } end
        last = word
      end
      at = at + #word
      -- The text in angle brackets after a declared name has generic parameters.
      local generic = code:match("^(%b<>)", at)
      if generic then
        for name in generic:sub(2, -2):gsub("%b<>", ""):gmatch "[^,]+" do
          local parameter = name:match "^%s*(%u[%w_]*)%s*$" or name:match "^%s*(%u[%w_]*)%s*:"
          if parameter then own[parameter .. "\0"] = true end
        end
      end
      before = word
    else
      if char == "{" then depth = depth + 1 elseif char == "}" then depth = depth - 1 end
      if char == "\n" then line = line + 1 end
      if not char:find "%s" then before, last = char, nil end
      at = at + 1
    end
  end
  -- Generic parameters are those of a function or type of this file: `func f<Input>(`,
  -- `class C<Input>`.
  for list in code:gmatch "func%s+[%w_]+%s*(%b<>)" do
    for name in list:gmatch "(%u[%w_]*)" do own[name] = own[name .. "\0"] end
  end
  for list in code:gmatch "[%l]+%s+%u[%w_]*%s*(%b<>)" do
    for name in list:gmatch "(%u[%w_]*)" do own[name] = own[name] or own[name .. "\0"] end
  end
  return { top = top, own = own, used = used }
end

-- The uses among files, from their texts by path. A type that two files declare counts for neither.
function swift.uses(texts)
  local files, home, paths = {}, {}, {}
  for path, text in pairs(texts) do
    paths[#paths + 1] = path
    files[path] = swift.analyse(text)
  end
  table.sort(paths)
  for _, path in ipairs(paths) do
    for name in pairs(files[path].top) do home[name] = home[name] == nil and path end
  end
  local uses = {}
  for _, path in ipairs(paths) do
    local file = files[path]
    for _, use in ipairs(file.used) do
      local to = home[use.name]
      if to and to ~= path and not file.own[use.name] then
        uses[#uses + 1] = { from = path, to = to, line = use.line, name = use.name }
      end
    end
  end
  return uses
end

function swift.read(folder, paths)
  local texts = {}
  for _, path in ipairs(paths) do
    local file <close> = assert(io.open(folder .. "/" .. path))
    texts[path] = file:read "a"
  end
  return swift.uses(texts)
end

return swift
