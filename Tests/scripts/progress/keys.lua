-- Keys that are typed while the tree is shown, Enter above all, leave nothing of it on the screen.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

-- At the end of the screen, where an Enter would scroll, and before it; a tree of several lines, and of one.
for _, case in ipairs {
  { lines = 2, rows = 36, enters = 2, tree = "work 0/2 [%dm ]+s\n├─ AOp [%dm ]+s\n└─ BOp [%dm ]+s$" },
  { lines = 50, rows = 20, enters = 2, tree = "work 0/2 [%dm ]+s\n├─ AOp [%dm ]+s\n└─ BOp [%dm ]+s$" },
  { lines = 50, rows = 5, enters = 1, tree = "work/AOp [%dm ]+s, 1 more$" },
} do
  local session = terminal.start(([[
    for i = 1, %d do print("line " .. i) end
    local function op(name) return flow.op(name, function() pause(1) end) end
    flow.new("work"):add_parallel(op "AOp", op "BOp"):run()
    print "over"
  ]]):format(case.lines), { rows = case.rows })
  session:expect(case.tree)
  -- No more than there are lines below the cursor: it returns a few times a second only.
  for _ = 1, case.enters do
    session:type "\r"
    session:expect("^[^\n]*line 1\n.*line " .. case.lines .. "\n" .. case.tree)
  end
  -- Other keys are replaced by the next lines of the tree.
  session:type "abc"
  -- The kernel may echo them a moment later, so the tree is looked at until its time is another one.
  local before = session:text():match(case.tree)
  local text, status
  repeat
    flow.sleep(0.01)
    text = session:expect("line " .. case.lines .. "\n" .. case.tree)
  until text:match(case.tree) ~= before
  session:go(1)
  text, status = session:finish()
  check.equal(status, 0)
  local wanted = {}
  for i = 1, case.lines do wanted[i] = "line " .. i end
  check.equal(text, table.concat(wanted, "\n") .. "\nover")
end
