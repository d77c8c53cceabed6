-- The tree follows the size of the terminal: its lines are cut by columns, and few lines show what matters most.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

local session = terminal.start([[
  local LongOp = flow.op("a-very-long-name-of-an-op", function(ctx) ctx:progress(1, 4) pause(1) end)
  local WideOp = flow.op("日本語のとても長い名前", function() pause(1) end)
  local OddOp = flow.op("a\27[2J\r\n\u{202E}b\xff" .. ("x"):rep(10000), function() pause(1) end)
  local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, run = function() pause(1) end })
  flow.new("all"):add_parallel(LongOp, WideOp, OddOp)
    :add_parallel(flow.new("last"):add(LongOp)):run()
]], { columns = 80, rows = 40 })
session:expect "all 0/4 [%dm ]+s\n├─ a%-very%-long%-name%-of%-an%-op ███▌░░░░░░░░░░░ 1/4 25%% [%dm ]+s"
local text = session:text()
assert(text:find "├─ 日本語のとても長い名前 [%dm ]+s\n", text)
assert(text:find "└─ a\\x1B%[2J\\r\\n\\u{202E}b\\xFFx+$", text)
local function each_fits(columns)
  for _, line in ipairs(session.state.lines) do
    -- Wide characters take two columns.
    local width = utf8.len(line) + select(2, line:gsub("[\u{65E5}\u{672C}\u{8A9E}]", ""))
    assert(utf8.len(line) < columns and width > 0, line)
  end
end
each_fits(80)

-- A narrower terminal: without the bar, then cut. The rest of another width is no part of the tree.
session:resize(44, 40)
session:expect "\n├─ a%-very%-long%-name%-of%-an%-op 1/4 25%% [%dm ]+s"
each_fits(44)
session:resize(24, 40)
session:expect "\n├─ a%-very%-long%-name%-of%-\n├─ 日本語のとても長い名\n└─ a\\x1B%[2J\\r\\n\\u{202E}$"
session:resize(1, 40)
session:expect "^[^%w]*$"
-- Wide enough for the estimate that a slow machine shows, too.
session:resize(80, 40)
session:expect "all 0/4 [%dm ]+s\n├─ a%-very%-long%-name%-of%-an%-op ███▌░"

-- Four lines have room for two executions and the number of the others; fewer have one line.
session:resize(60, 9)
session:expect "all 0/4 [%dm ]+s\n└─ a%-very[^\n]*\n… 2 more$"
session:resize(60, 6)
session:expect "all/a%-very%-long%-name%-of%-an%-op 1/4 25%% [%dm ]+s, [^\n]*2 more$"
session:resize(60, 2)
session:expect "all/a%-very%-long%-name%-of%-an%-op 1/4 25%% [%dm ]+s, [^\n]*2 more$"
session:go(1)
local status
text, status = session:finish()
check.equal(status, 0)

-- A terminal that wraps what it shows when it becomes narrower keeps nothing of the wider tree.
local wide = { "kitty", { KITTY_WINDOW_ID = "1" }, true }
for _, kind in ipairs { wide, { "xterm", { KITTY_WINDOW_ID = "1", XTERM_VERSION = "XTerm(379)" }, false } } do
  session = terminal.start([[
    print("above")
    local LongOp = flow.op("a-very-long-name-of-an-op", function(ctx) ctx:progress(1, 4) pause(1) end)
    flow.new("all"):add_parallel(LongOp, LongOp, LongOp):run()
  ]], { columns = 70, environment = kind[2] })
  session:expect "^above\nall 0/3 [%dm ]+s\n├─ a[^\n]+\n├─ a[^\n]+\n└─ a[^\n]+ 1/4 [^\n]*$"
  for _, columns in ipairs { 34, 20, 50 } do
    session:resize(columns, 36, kind[3])
    local deadline = flow.now() + 60
    local fits
    repeat
      session:expect "^above\nall 0/3[^\n]+\n├─ a[^\n]+\n├─ a[^\n]+\n└─ a[^\n]+$"
      fits = true
      for _, line in ipairs(session.state.lines) do fits = fits and utf8.len(line) < columns end
      flow.sleep(0.01)
    until fits or flow.now() > deadline
    assert(fits, columns)
  end
  session:go(1)
  check.equal(session:finish(), "above")
end
