-- The table of the package's targets, made of Package.swift: each target with the comment above it.
local targets = {}

function targets.read(text)
  local list = {}
  for comment, body in text:gmatch "\n    // ([^\n]+)\n    %.%l+%a*(%b())" do
    local name = body:match 'name: "(%w+)"'
    local needs = {}
    for each in (body:match "dependencies: (%b[])" or ""):gmatch '"(%w+)"' do
      needs[#needs + 1] = ("`%s`"):format(each)
    end
    -- Programs of the examples and of the bench are no part of flowlua.
    if not body:find 'path: "examples/' and not body:find 'path: "scripts/' then
      list[#list + 1] = { name = name, does = comment:gsub("%.$", ""), needs = needs }
    end
  end
  return list
end

-- The highest target first.
function targets.table(text)
  local list = targets.read(text)
  assert(#list > 4, "Package.swift has no targets with comments")
  local lines = { "| target | contains | depends on |", "|---|---|---|" }
  for i = #list, 1, -1 do
    lines[#lines + 1] = ("| `%s` | %s | %s |"):format(
      list[i].name, list[i].does, table.concat(list[i].needs, ", "))
  end
  return table.concat(lines, "\n") .. "\n"
end

-- A page whose table after `<!-- targets -->` is this one.
function targets.fill(page, text)
  local before, after = page:match "^(.-<!%-%- targets %-%->\n\n)|.-\n(\n.*)$"
  assert(before, "the page has no table behind <!-- targets -->")
  return before .. targets.table(text) .. after
end

return targets
