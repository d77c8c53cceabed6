-- Tests the checks: each gets a wrong input and has to report what is wrong with it.
local flow = require "flow"
local annotations, bindings = require "annotations", require "bindings"
local comments, links, mentions = require "comments", require "links", require "mentions"
local page, snippets = require "page", require "snippets"
local phrases, specification = require "phrases", require "specification"
local symbols = require "symbols"

local wrong = [[
# A title

[dead](nothing.md), [alive](#a-title), [no heading](#nowhere), <doc:NoArticle>
and <doc:/A/wrong#A-title>

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

-- Texts with refused phrases, by the ends of their names. Each `answers` is one, but in
-- code, in output, and as a noun.
local stilted = {
  md = [[
# What `goes on` is
- The loop Goes
  on, and `answers` with the answers; `the op
  answers` is code.

| a | answers |
| What `it` is | What is it? |

What is it? The op. What it
does: **what it has**. The same
with `What it does`, for all.

```text
it answers
```

]] .. ("word "):rep(31) .. [[

- ]] .. ("word "):rep(20) .. "end. " .. ("word "):rep(20) .. [[

]],
  swift = [[
/// Answers whether
/// it goes on.
///
/// ```
/// it answers
/// ```
let text = "// it answers" // It answers.
let more = """
  // it answers
  """
/* It stands
   in a list. */
/// - a: What it is.
let a = "What it is", b = 1 // As in Lua.
// MARK: - What it is, and that
// of the op
]],
  ["1"] = [[
.\" it answers
.Sh NAME
.Nm answers
The option
.Fl answers
stands
.Cm in
a list; it stands
in it.
]],
  sh = [[
#!/bin/sh
# It goes
# on.
echo "it answers" # it answers
]],
  lua = [[
-- It goes
-- on.
print "it answers"
  -- It answers.
]],
  ["d.lua"] = [[
---A function that is used
---anew.
---@field a string It answers.
---@field b? fun(): string What it is.
-- It answers.
local answers = "---It answers."
]],
}

local function expect(problems, ...)
  for _, part in ipairs { ... } do
    local found = false
    for _, problem in ipairs(problems) do found = found or problem:find(part, 1, true) end
    assert(found, ("the checks no longer find: %s\nthey found: %s"):format(
      part, table.concat(problems, "\n")))
  end
  assert(#problems == select("#", ...), "they find too much:\n" .. table.concat(problems, "\n"))
end

return function(scratch, source, module_flags)
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
    ":3: no article 'NoArticle'", ":4: DocC can't link to a heading of another module")

  -- Code, but no output, is narrow; a page that isn't a reference has at most 250 lines.
  problems = {}
  local wide = ("x"):rep(101)
  flow.fs.write(path, ("```lua\n%s\n```\n```text\n%s\n```\n%s"):format(wide, wide, ("\n"):rep(245)))
  page.check(page.read(path), report)
  expect(problems, "wrong.md:250: the page has 251 lines", ":2: code with 101 columns")

  problems = {}
  local count, texts = snippets.run(self, scratch .. "/wrong", {}, report)
  expect(problems, ":7: the snippet ends with status 1, not 0:",
    ":12: the snippet ends with status 0, not 1:")
  assert(count == 3 and texts[self.blocks[4]] == "one\n", "outputs aren't compared")

  -- A type that isn't public, and a member that is missing; `Run.value` is inherited.
  problems = {}
  local prose = {
    path = "prose.md", blocks = {},
    lines = { "`Run.wait()`, `Run.value`", "`ProgressTree` and `Run.nothing`, `Other.nothing`" },
  }
  local names = { Run = true, ["Run.wait"] = true, FlowTask = true, ["FlowTask.value"] = true }
  mentions.check({ prose }, { names = names, bases = { Run = { FlowTask = true } } }, report)
  expect(problems, "prose.md:2: 'ProgressTree' isn't public",
    "prose.md:2: 'Run' has no public 'nothing'")

  -- Types without an example, but for one that the enclosing type's example names, one of whose
  -- cases it has, and one that programs use without a name.
  problems = {}
  local function type_of(code, declaration)
    return { file = "types.swift", line = 7, code = code, declaration = declaration or "enum" }
  end
  symbols.check_examples({
    Mode = type_of "", Steps = type_of("", "@resultBuilder enum Steps"),
    Run = type_of "let run: Run.Id = Run(.ready)", ["Run.Id"] = type_of "",
    ["Run.State"] = type_of "", ["Run.Kind"] = type_of "",
  }, { ["Run.State"] = { "ready" }, ["Run.Kind"] = { "read" } }, report)
  expect(problems, "types.swift:7: Mode has no example", "types.swift:7: Run.Kind has no example")

  -- Only the second snippet doesn't compile.
  problems = {}
  local commented, known = scratch .. "/commented.swift", scratch .. "/names.swift"
  flow.fs.write(known, "let known = 1\n")
  flow.fs.write(commented, [[
/// ```swift
/// let text = known + { … }()
/// ```
///   ```
///   let other = =
///   ```
struct S {
  /// ```swift
  /// let text = unknown
  /// ```
}
]])
  assert(comments.check({ commented }, known, scratch .. "/comments", module_flags, report) == 2)
  expect(problems, "commented.swift:9: the snippet doesn't compile: cannot find 'unknown' in scope")

  -- A field, an option and a text that are missing, and one that is too much.
  problems = {}
  local entries = annotations.read_all(source)
  for _, entry in ipairs(entries) do
    if entry.name == "flow.ExecOptions" then table.remove(entry.fields, 1) end
    if entry.name == "flow.Ctx" then entry.fields[1].name = "title" end
    if entry.signature == "flow.sleep(seconds)" then entry.doc = {} end
  end
  bindings.check(entries, source, report)
  expect(problems, "flow.ExecOptions lacks 'stdin'", "flow.Ctx: there is no 'title'",
    "flow.Ctx lacks 'name'", "flow.sleep(seconds) has no text")

  -- A first line without an end, a folder without a heading, and headings without scripts.
  problems = {}
  local scripts = {
    ["op/good.lua"] = "#!/usr/bin/env flowlua\n-- A <secret> and `<code>` of __close and a_name.\n",
    ["op/bad.lua"] = "-- A title\n", ["new/other.lua"] = "-- Sentence.\n",
    ["lib/shared.lua"] = "return {}\n",
  }
  local paths = {}
  for name, text in pairs(scripts) do
    local folder = scratch .. "/scripts/" .. name:match "^[^/]+"
    assert(os.execute(("mkdir -p %s"):format(folder)))
    paths[#paths + 1] = scratch .. "/scripts/" .. name
    local file <close> = assert(io.open(paths[#paths], "w"))
    file:write(text)
  end
  local text = specification.page(scratch .. "/scripts", paths, report)
  local item = "\n- A \\<secret> and `<code>` of \\_\\_close and a_name. `good.lua`\n"
  assert(text:find(item, 1, true), text)
  local empty = 0
  for i = #problems, 1, -1 do
    if problems[i]:find("but there is no script", 1, true) then
      empty = empty + 1
      table.remove(problems, i)
    end
  end
  assert(empty > 10, "headings without scripts aren't found")
  expect(problems, "op/bad.lua:1: the first line isn't a sentence",
    "new/other.lua:1: scripts/docs.d/specification.lua has no heading")

  problems = {}
  for _, kind in ipairs { "1", "d.lua", "lua", "md", "sh", "swift" } do
    local name = scratch .. "/stilted." .. kind
    do
      local file <close> = assert(io.open(name, "w"))
      file:write(stilted[kind])
    end
    phrases.check(name, report)
  end
  expect(problems, "stilted.1:8: 'stands in': write 'is in' or 'is'",
    "stilted.d.lua:2: 'anew': write 'again'", "stilted.d.lua:3: 'answers': write",
    "stilted.d.lua:4: 'What': write the noun",
    "stilted.lua:1: 'goes on': write", "stilted.lua:4: 'answers': write",
    "stilted.md:1: 'What': write", "stilted.md:2: 'goes on': write",
    "stilted.md:6: 'answers': write", "stilted.md:7: 'What': write", "stilted.md:9: 'What': write",
    "stilted.md:10: 'The same': write the thing", "stilted.md:10: 'what it has': write its parts",
    "stilted.md:17: a sentence of 31 words:word word",
    "stilted.sh:2: 'goes on': write",
    "stilted.swift:1: 'answers': write", "stilted.swift:2: 'goes on': write",
    "stilted.swift:7: 'answers': write", "stilted.swift:11: 'stands in': write",
    "stilted.swift:13: 'What': write", "stilted.swift:14: 'as in': write 'like'",
    "stilted.swift:15: 'What': write", "stilted.swift:15: 'that of': write the noun again")

  local targets = require "targets"
  local filled = targets.fill("<!-- targets -->\n\n| a |\n|---|\n\nEnd\n", [[

    // The program.
    .executableTarget(
      name: "Cli", dependencies: ["Engine", "Loop"]),
    // Jobs.
    .target(name: "Loop", dependencies: []),
    .target(name: "Hidden"),
    // Ops.
    .target(name: "Engine", dependencies: ["Loop"]),
    // Values.
    .target(name: "Values"),
    // Lua.
    .target(name: "Lua"),
    // An example.
    .executableTarget(name: "Example", path: "examples/example"),
]])
  local rows = "| `Engine` | Ops | `Loop` |\n| `Loop` | Jobs |  |\n"
    .. "| `Cli` | The program | `Engine`, `Loop` |\n\nEnd\n"
  assert(filled:find(rows, 1, true), filled)
end
