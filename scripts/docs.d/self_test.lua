-- What the checks are there for, they find: each is given something wrong, and has to name it.
local annotations, bindings = require "annotations", require "bindings"
local links, page, snippets = require "links", require "page", require "snippets"

local wrong = [[
# A title

[dead](nothing.md), [alive](#a-title), [no heading](#nowhere), <doc:NoArticle>

```lua
local x = = 1
```

<!-- status: 1 -->
```lua
print "this works"
```

```lua
print "one"
```

```text
another
```
]]

local function expect(problems, ...)
  for _, part in ipairs { ... } do
    local found = false
    for _, problem in ipairs(problems) do found = found or problem:find(part, 1, true) end
    assert(found, ("the checks no longer find: %s\nthey found: %s"):format(
      part, table.concat(problems, "\n")))
  end
  assert(#problems == select("#", ...), "they find too much:\n" .. table.concat(problems, "\n"))
end

return function(scratch, source)
  local path = scratch .. "/wrong.md"
  do
    local file <close> = assert(io.open(path, "w"))
    file:write(wrong)
  end
  local problems = {}
  local function report(file, line, message)
    problems[#problems + 1] = ("%s:%d: %s"):format(file, line, message)
  end
  local self = page.read(path)
  links.check({ self }, report)
  expect(problems, ":3: dead link 'nothing.md'", ":3: no heading '#nowhere'",
    ":3: no article 'NoArticle'")

  problems = {}
  local count, texts = snippets.run(self, scratch .. "/wrong", {}, report)
  expect(problems, ":6: the snippet ends with status 1, not 0:",
    ":11: the snippet ends with status 0, not 1:")
  assert(count == 3 and texts[self.blocks[4]] == "one\n", "outputs aren't compared")

  -- A field, an option and a text that are missing, and one that is too much.
  problems = {}
  local entries = annotations.read(source)
  local more = annotations.read((source:gsub("flow.d.lua$", "flow.testing.d.lua")))
  table.move(more, 1, #more, #entries + 1, entries)
  for _, entry in ipairs(entries) do
    if entry.name == "flow.ExecOptions" then table.remove(entry.fields, 1) end
    if entry.name == "flow.Ctx" then entry.fields[1].name = "title" end
    if entry.signature == "flow.sleep(seconds)" then entry.doc = {} end
  end
  bindings.check(entries, source, report)
  expect(problems, "flow.ExecOptions lacks 'stdin'", "flow.Ctx: there is no 'title'",
    "flow.Ctx lacks 'name'", "flow.sleep(seconds) has no text")
end
