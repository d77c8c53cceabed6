-- While undos execute, the tree says what is being undone and what was; an undo that fails leaves a line.
-- python: pyte
-- clock: real: the terminal is another program
local check, terminal = require "check", require "terminal"

local session = terminal.start [[
  local CreateOp = flow.op("CreateOp", { run = function() end, undo = function(ctx)
    if ctx.index == 2 then pause(1) ctx:fail "stuck" end
    pause(2)
  end })
  local FailOp = flow.op("FailOp", function(ctx) ctx:fail "no" end)
  local run = flow.new("signup"):add(flow.new("inner"):add_grouped(CreateOp, { input = "list", as = "item" }))
    :add(FailOp):start { list = { 1, 2 } }
  pcall(run.wait, run)
  os.exit(0)
]]
local text = session:expect "\n└─ undo CreateOp #2 [%dm ]+s$"
check.contains(text, "signup/FailOp failed: no\n", "├─ ✗ FailOp 0.0s\n")
session:go(1)
text = session:expect "\n└─ undo CreateOp #1 [%dm ]+s$"
check.contains(text, "signup/inner/CreateOp #2 couldn't be undone: stuck\n", "├─ ✗ undo CreateOp #2 ")
session:go(2)
local _, status = session:finish()
check.equal(status, 0)
