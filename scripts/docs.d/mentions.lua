-- Finds names of Swift in the prose of pages that no program can use: `Type.member` of a public
-- type that has no such member, and types of flowlua that aren't public. DocC checks links of the
-- form ``Type`` itself.
local flow = require "flow"
local mentions = {}

-- Pages about the sources, about names of earlier versions, and about types of scripts.
local skipped = {
  ["HowItIsBuilt.md"] = true, ["CHANGELOG.md"] = true, ["LuaReference.md"] = true,
}
-- Names of scripts, and within typed ops and machines, that begin as those of types here.
local others = {
  ["Op.needs"] = true, ["Op.retry"] = true, ["Op.thread"] = true, Output = true,
}

-- The names of the types in the sources, nested and private ones left out.
local function declared_types()
  local names = {}
  local found = flow.exec({
    "git", "grep", "-hE", [[^(@[a-zA-Z_]+(\([A-Za-z]+\))? )*([a-z]+ )*]]
      .. "(class|struct|enum|protocol|actor|typealias) [A-Z]",
    "Sources/*.swift",
  }):await().stdout
  for line in found:gmatch "[^\n]+" do
    if not line:find "private" then names[line:match "%l (%u%w*)"] = true end
  end
  return names
end

-- Whether a type, or one that it inherits from or conforms to, has the member.
local function has(public, path, member)
  if public.names[path .. "." .. member] then return true end
  for base in pairs(public.bases[path] or {}) do
    if has(public, base, member) then return true end
  end
  return false
end

-- The problem of `A.B.member`; nil for none. Names with underscores are those of scripts,
-- and what follows a member isn't looked up.
local function problem(public, types, mention)
  local path
  for name in mention:gmatch "[%w_]+" do
    if not path then
      if not public.names[name] then return types[name] and ("'%s' isn't public"):format(name) end
      path = name
    elseif name:find "_" or path:find "%.%l" then
      return
    elseif not has(public, path, name) then
      return ("'%s' has no public '%s'"):format(path, name)
    else
      path = path .. "." .. name
    end
  end
end

-- Reports them; returns the number of names of ours. `public` comes from `symbols.check`.
function mentions.check(pages, public, report)
  local count, types = 0, declared_types()
  for _, page in ipairs(pages) do
    local blocks = {}
    for _, block in ipairs(page.blocks) do
      for number = block.first, block.last do blocks[number] = true end
    end
    for number, line in ipairs(page.lines) do
      if not blocks[number] and not skipped[page.path:match "[^/]+$"] then
        for code in line:gmatch "%f[`]`([^`]+)`" do
          local mention = code:match "^%u%w*[%w_.]*"
          if mention then
            local found = not others[mention] and problem(public, types, mention)
            if found then report(page.path, number, found) end
            count = count + 1
          end
        end
      end
    end
  end
  return count
end

return mentions
