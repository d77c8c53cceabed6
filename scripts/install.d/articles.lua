-- Copies articles into a folder, with links that work in files: `<doc:Groups>` becomes a link to
-- Groups.md with the title of that article.
--
--   flowlua articles.lua FOLDER ARTICLE...
local folder = arg[1]

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local texts, titles = {}, {}
for i = 2, #arg do
  local name = arg[i]:match "([^/]+)%.md$"
  assert(not texts[name], arg[i] .. ": there are two articles of this name")
  texts[name] = read(arg[i])
  titles[name] = texts[name]:match "^# ([^\n]+)"
end

for name, text in pairs(texts) do
  local linked = text:gsub("<doc:([^>#]+)([^>]*)>", function(target, anchor)
    local other = target:match "[^/]+$"
    local title = assert(titles[other], ("%s.md refers to %s"):format(name, target)):gsub("`", "")
    return ("[%s](%s.md%s)"):format(title, other, anchor:lower())
  end)
  local file <close> = assert(io.open(("%s/%s.md"):format(folder, name), "wb"))
  assert(file:write(linked))
end
