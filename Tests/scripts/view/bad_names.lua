-- Names and messages with markup, quotes, control characters or bytes that aren't UTF-8 change no view.
local flow, check, json = require "flow", require "check", require "flow.json"

local names = {
  "</script><script>alert(1)</script>", "`code` ``twice``", "a|b", "line\nend\r\n# title", "\0\1\27[31m\127",
  "\xFF\xC3", "\u{202E}right to left", "![x](http://x.y/z)", "@all #1 <!-- \"'", "`", " ", "\u{2028}",
  ("long"):rep(2500),
}
for _, name in ipairs(names) do
  local FailOp = flow.op(name, { needs = { x = "integer" }, run = function(ctx) ctx:fail(name) end })
  local run = flow.new(name):data { list = { 1, 2 } }
    :add_grouped(FailOp, { input = "list", allow_failure = true }):add(FailOp):run({ x = 1 })
  check.equal(run.ok, false)

  local report = run:report()
  check.lacks(report, "\r", "\0", "\27", "\127", "\u{202E}", "\u{2028}", "\xFF", "# title\n")
  assert(utf8.len(report), "the report isn't UTF-8")
  assert(#report < 8000, #report)
  -- The only lines that begin with markup are the report's own, and each row of a table has its cells.
  local cells
  for line in report:gmatch "[^\n]*" do
    local first = line:sub(1, 1)
    assert(first == "" or first:find "[#|%-`S]", line)
    if first == "|" then
      -- Text in code spans isn't markup, but a bar separates cells even there, unless it is escaped.
      local _, count = line:gsub("\\|", ""):gsub("|", "")
      cells = cells or count
      check.equal(count, cells, line)
    else
      cells = nil
    end
    -- Outside of code spans there is no tag, no link, no mention.
    local bare = line:gsub("(`+) ?.-%f[`]%1%f[^`]", "")
    assert(not bare:find "[<>%[%]@!]", line)
  end

  local trace = json.decode(run:trace())
  local found = 0
  for _, event in ipairs(trace.traceEvents) do
    if event.ph == "X" and event.cat == "op" then
      found = found + 1
      assert(#event.name >= math.min(#name, 3), event.name)
      if utf8.len(name) then
        check.equal(event.args.op, name)
        check.equal(event.args.error, name)
      end
    end
  end
  check.equal(found, 3)
end
