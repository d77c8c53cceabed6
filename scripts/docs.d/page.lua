-- Reads a Markdown page: its fenced blocks with the markers before them, its headings, its links.
local page = {}

-- `<!-- file: greet.lua, status: 1 -->` → { file = "greet.lua", status = "1" }
local function marker(line)
  local text = line:match "^%s*<!%-%- (.*) %-%->%s*$"
  if not text then return {} end
  local fields = {}
  for part in (text .. ", "):gmatch "(.-), " do
    local name, value = part:match "^([%a ]+): (.*)$"
    fields[name or part] = value or true
  end
  return fields
end

-- The id of a heading, as links name it.
function page.anchor(title)
  return (title:gsub("[`*]", ""):lower():gsub("[^%w%s_-]", ""):gsub(" ", "-"))
end

function page.read(path)
  local result = { path = path, lines = {}, blocks = {}, links = {}, anchors = {} }
  local open, last = nil, ""
  for line in io.lines(path) do
    local number = #result.lines + 1
    result.lines[number] = line
    if open then
      if line:find "^%s*```%s*$" then
        open.last = number - 1
        open.text = table.concat(result.lines, "\n", open.first, open.last)
        if open.last >= open.first then open.text = open.text .. "\n" end
        result.blocks[#result.blocks + 1] = open
        open = nil
      end
    elseif line:find "^%s*```" then
      open = { language = line:match "^%s*```(%S*)", first = number + 1, marker = marker(last) }
    else
      local title = line:match "^#+ (.*)$"
      if title then result.anchors[page.anchor(title)] = true end
      for id in line:gmatch 'id="([^"]+)"' do result.anchors[id] = true end
      -- Not in code.
      local bare = line:gsub("`[^`]*`", "")
      for target in bare:gmatch "%]%(([^)%s]+)%)" do
        result.links[#result.links + 1] = { target = target, line = number }
      end
      for target in bare:gmatch 'src="([^"]+)"' do
        result.links[#result.links + 1] = { target = target, line = number }
      end
      for target in bare:gmatch "<doc:([^>]+)>" do
        result.links[#result.links + 1] = { target = target, line = number, article = true }
      end
    end
    if line:find "%S" then last = line end
  end
  assert(not open, path .. ": a code block without an end")
  return result
end

-- Lists in which one looks up, rather than pages that one reads.
local references = {
  ["CHANGELOG.md"] = true, ["ComingFromFlow.md"] = true, ["CommandLine.md"] = true,
  ["Cookbook.md"] = true, ["LuaReference.md"] = true, ["Specification.md"] = true,
}

-- Reports code that a narrow window cuts off, and a page that is too long. The text of a program
-- is as wide as the program writes it.
function page.check(self, report)
  local limit = self.path == "README.md" and 200 or 250
  if #self.lines > limit and not references[self.path:match "[^/]+$"] then
    report(self.path, limit, ("the page has %d lines, and may have %d"):format(#self.lines, limit))
  end
  for _, block in ipairs(self.blocks) do
    for number = block.first, block.last do
      local width = utf8.len(self.lines[number])
      if width > 100 and block.language ~= "text" then
        report(self.path, number, ("code with %d columns, and not 100"):format(width))
      end
    end
  end
end

-- The page with other texts in blocks: a table from blocks to texts.
function page.with(self, texts)
  local lines, number = {}, 1
  for _, block in ipairs(self.blocks) do
    if texts[block] then
      table.move(self.lines, number, block.first - 1, #lines + 1, lines)
      lines[#lines + 1] = (texts[block]:gsub("\n$", ""))
      number = block.last + 1
    end
  end
  table.move(self.lines, number, #self.lines, #lines + 1, lines)
  return table.concat(lines, "\n") .. "\n"
end

return page
