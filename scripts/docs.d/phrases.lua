-- Finds phrases that the project's prose doesn't use, and says what to write instead. It reads
-- Markdown, the manual page, annotations, and comments of Swift, C, Lua and shell; code and output
-- don't count.
local phrases = {}

-- Each entry: phrases, what to write instead, and the words after which they are right (optional).
local determiners =
  " a an all any both his its no of our that the their these those two what whose your "
local refused = {
  { { "behind" }, "'after' or 'following'" },
  { { "in front of", "in front" }, "'before'" },
  { { "goes on", "go on", "went on", "gone on" }, "'continues', 'runs' or 'happens'" },
  { { "going on" }, "'in progress' or 'running'" },
  { { "answers", "answered" }, "'returns', 'handles' or 'replies'", after = determiners },
  { { "is told", "are told", "was told", "were told", "be told", "told of" },
    "'is reported', 'is notified' or 'learns'" },
  { { "tells of", "tell of" }, "'describes' or 'mentions'" },
  { { "hears of", "hear of", "hears the", "hears that" }, "'is notified of' or 'receives'" },
  { { "what is around", "what was around" }, "'the enclosing …'" },
  { { "of then" }, "'at that time'" },
  { { "anew" }, "'again'" },
  { { "in place of what", "in the place of" }, "'instead of'" },
  { { "let go of", "lets go of", "letting go of" }, "'release'" },
  { { "takes away", "take away", "taken away", "taking away" }, "'remove'" },
  { { "nobody looked at", "nobody has looked at", "nobody had looked at" }, "'unobserved'" },
  { { "has no part in", "have no part in", "had no part in" }, "what the thing is limited to" },
  { { "the begin", "its begin", "their begin" }, "'the start' or 'the beginning'" },
  { { "its kin", "their kin", "and kin" }, "'similar …' or the names themselves" },
  { { "as ever" }, "'as usual' or 'unchanged'" },
  { { "whoever" }, "'the caller', 'the owner' or 'the code that'" },
  { { "comes to be", "come to be", "came to be" }, "'is made'" },
  { { "is asked to stop", "are asked to stop", "was asked to stop", "were asked to stop" },
    "'is being stopped' or 'receives a stop request'" },
  { { "stands in", "stand in", "stands under", "stand under", "stands there", "stood there" },
    "'is in' or 'is'" },
  { { "that of" }, "the noun again, or 'the op's'" },
  { { "those of which" }, "the noun again" },
  { { "as in" }, "'like', 'such as', 'for example in', or the verb: 'as Lua does'" },
  { { "what it has" }, "its parts by their names" },
}

-- Words that begin no sentence, and what to write instead. A question may.
local beginnings = {
  { "What", "the noun: 'The data that …'" },
  { "The same", "the thing, with what differs" },
}

-- A unit is a stretch of prose. A phrase may cross the end of a line within it.
local function new_units()
  local units, open = {}, nil
  local self = {}
  function self.close() open = nil end
  function self.add(number, text)
    text = text:gsub("^%s+", ""):gsub("%s+$", "")
    if text == "" then return self.close() end
    if not open then
      open = {}
      units[#units + 1] = open
    end
    open[#open + 1] = { number = number, text = text }
  end
  -- A line that belongs to no other.
  function self.alone(number, text)
    self.close()
    self.add(number, text)
    self.close()
  end
  self.list = units
  return self
end

local function markdown_line(units, number, text)
  if text:find "^%s*[#|]" then return units.alone(number, text) end
  if text:find "^%s*[-*] " or text:find "^%s*%d+%. " then units.close() end
  units.add(number, (text:gsub("<!%-%-.-%-%->", "")))
end

local function markdown(lines)
  local units, in_code = new_units(), false
  for number, line in ipairs(lines) do
    if line:find "^%s*```" then
      in_code = not in_code
      units.close()
    elseif not in_code then
      markdown_line(units, number, line)
    end
  end
  return units.list
end

-- Macros of mdoc whose arguments are literal text, not prose.
local literal = {}
for name in ("Ar Cm Dl Dt Ev Fl Nm Op Os Pa Ql Xr"):gmatch "%a+" do literal[name] = true end

local function manual(lines)
  local units = new_units()
  for number, line in ipairs(lines) do
    local macro, rest = line:match "^%.(%S+)%s*(.*)$"
    if not macro then
      units.add(number, line)
    elseif literal[macro] then
      units.add(number, "`" .. rest .. "`")
    elseif macro == "Sh" or macro == "Nd" then
      units.alone(number, rest)
    else
      units.close()
    end
  end
  return units.list
end

local function luacats(lines)
  local units = new_units()
  for number, line in ipairs(lines) do
    local text = line:match "^%-%-%-(.*)$"
    if not text then
      units.close()
    elseif text:find "^[@|]" then
      units.alone(number, text)
    else
      units.add(number, text)
    end
  end
  return units.list
end

-- Comments of scripts that fill their lines, which a pattern captures.
local function script(comment)
  return function(lines)
    local units = new_units()
    for number, line in ipairs(lines) do
      local text = line:match(comment)
      if text then units.add(number, text) else units.close() end
    end
    return units.list
  end
end

-- Comments of Swift and C. Strings, also those of several lines, are skipped.
local function comments(lines)
  local units, in_text, in_block, in_code = new_units(), false, false, false
  local function comment(number, text, alone)
    if text:find "^%s*```" then
      in_code = not in_code
      units.close()
    elseif in_code then
      return
    elseif alone then
      units.alone(number, text)
    else
      markdown_line(units, number, text)
    end
  end
  for number, line in ipairs(lines) do
    local at, found = 1, false
    while at <= #line do
      if in_text then
        local _, last = line:find('"""', at, true)
        in_text, at = not last, last and last + 1 or #line + 1
      elseif in_block then
        local first, last = line:find("*/", at, true)
        comment(number, (line:sub(at, (first or 0) - 1):gsub("^%s*%*+", "")))
        in_block, at, found = not last, last and last + 1 or #line + 1, true
      else
        local first = line:find('["/\']', at)
        if not first then break end
        if line:sub(first, first + 1) == "//" then
          local alone = line:sub(1, first - 1):find "%S"
          comment(number, line:match("^/+(.*)$", first), alone)
          at, found = #line + 1, true
        elseif line:sub(first, first + 1) == "/*" then
          in_block, at = true, first + 2
          units.close()
        elseif line:sub(first, first + 2) == '"""' then
          in_text, at = true, first + 3
        elseif line:sub(first, first) == "/" then
          at = first + 1
        else
          local mark = line:sub(first, first)
          at = first + 1
          while at <= #line and line:sub(at, at) ~= mark do
            at = at + (line:sub(at, at) == "\\" and 2 or 1)
          end
          at = at + 1
        end
      end
    end
    if not found then
      units.close()
      in_code = false
    end
  end
  return units.list
end

-- The texts between the tags of HTML.
local function html(lines)
  local units = new_units()
  for number, line in ipairs(lines) do units.alone(number, (line:gsub("<[^>]*>?", " "))) end
  return units.list
end

local readers = {
  { "%.md$", markdown }, { "%.1$", manual }, { "%.d%.lua$", luacats },
  { "%.lua$", script "^%s*%-%-(.*)$" }, { "%.sh$", script "^%s*#+%s(.*)$" },
  { "^scripts/[%w-]+$", script "^%s*#+%s(.*)$" },
  { "%.html$", html },
  { "%.swift$", comments }, { "%.[ch]$", comments }, { "%.cpp$", comments },
  { "%.js$", comments }, { "%.css$", comments },
}

-- The text of a unit without code, and for each of its lines where it begins in that text.
local function join(unit)
  local parts, starts, length = {}, {}, 0
  for i, line in ipairs(unit) do
    starts[i] = length + 1
    parts[i] = line.text
    length = length + #line.text + 1
  end
  -- Inline code may cross a line's end.
  local text = table.concat(parts, " "):gsub("``.-``", function(code) return ("#"):rep(#code) end)
  text = text:gsub("`[^`]*`", function(code) return ("#"):rep(#code) end)
  return text, starts
end

-- Calls `found` with the place of each sentence that begins with the words and is no question. In
-- annotations a sentence also follows a name and a type.
local function each_beginning(text, words, found)
  local tagged = text:find "^@"
  for at, last in text:gmatch("()%f[%w]" .. words .. "()%f[^%w]") do
    local before = text:sub(1, at - 1)
    local begins = before:find "^%A*$" or before:find "[.:!?|][*_)]*%s+[-*_(%s]*$"
    local mark = text:match("[.?!|]%f[%s%z]", last)
    if (begins or tagged) and mark ~= "?" then found(at) end
  end
end

local function check_unit(path, unit, report)
  local written, starts = join(unit)
  local function refuse(at, words, better)
    local line = #starts
    while starts[line] > at do line = line - 1 end
    report(path, unit[line].number, ("'%s': write %s"):format(words, better))
  end
  -- The headings of pages of timelines are the reader's questions.
  for _, entry in ipairs(path:find "%.html$" and {} or beginnings) do
    local words, better = table.unpack(entry)
    each_beginning(written, words, function(at) refuse(at, words, better) end)
  end
  local text = written:lower()
  for _, entry in ipairs(refused) do
    for _, phrase in ipairs(entry[1]) do
      for at in text:gmatch("()%f[%w]" .. phrase .. "%f[^%w]") do
        local before = text:sub(1, at - 1):match "(%w+) $"
        if not (entry.after and before and entry.after:find(" " .. before .. " ", 1, true)) then
          refuse(at, phrase, entry[2])
        end
      end
    end
  end
end

-- Reports sentences of more than 30 words. A colon, a semicolon and a cell of a table also end one.
local function check_length(path, unit, report)
  local written = join(unit):gsub("[.:;!?][*_)\"]*%s", "|")
  for sentence in written:gmatch "[^|]+" do
    local _, count = sentence:gsub("%S+", "")
    if count > 30 then
      report(path, unit[1].number, ("a sentence of %d words:%s"):format(count, sentence:sub(1, 60)))
    end
  end
end

-- Pages, annotations and comments of sources, but no lists of changes or of tests.
local function is_read(path)
  return (path:find "%.md$" or path:find "%.d%.lua$" or path:find "%.swift$" or path:find "%.1$")
    and not path:find "^Tests/" and not path:find "CHANGELOG"
end

-- Reports each refused phrase in a file, and each long sentence of a page.
function phrases.check(path, report)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  for _, reader in ipairs(readers) do
    if path:find(reader[1]) then
      for _, unit in ipairs(reader[2](lines)) do
        check_unit(path, unit, report)
        if is_read(path) then check_length(path, unit, report) end
      end
      return
    end
  end
  error(path .. ": no such text is known")
end

return phrases
