-- A name may be any bytes and stays unchanged.
local flow, check = require "flow", require "check"
local all = {}
for i = 0, 255 do all[#all + 1] = string.char(i) end
all = table.concat(all)
for _, name in ipairs { "Op", "o", "mit Umlaut äöü", "new\nline", "\0", "\xff\xfe", all, ("x"):rep(10000), "[x] y" } do
  local seen
  local op = flow.op(name, function(ctx) seen = ctx.name ctx:log("said") end)
  local run = flow.new(name):add(op):run()
  check.equal(seen, name)
  check.equal(run.name, name)
  local shown = "[" .. check.on_one_line(name) .. "]"
  check.contains(run:summary(), shown .. " WillStart\n", shown .. " said\n")
end
