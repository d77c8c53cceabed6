-- Ctrl-Z removes the tree before the process pauses; it appears again in the foreground, and not in the background.
-- python: pyte
-- clock: real: the terminal is another program
local check, terminal = require "check", require "terminal"

local session = terminal.start([[
  local WaitOp = flow.op("WaitOp", function() pause(1) end)
  flow.new("paused"):add_parallel(WaitOp, WaitOp, WaitOp):run()
  print "over"
]], { shell = true })
session:type "$RUN\n"
session:expect "paused 0/3 [%dm ]+s\n├─ WaitOp [%dm ]+s\n├─ WaitOp [%dm ]+s\n└─ WaitOp [%dm ]+s$"
session:type "\26"
local text = session:expect "[Ss]topped.*\nshell%$$"
check.lacks(text, "paused 0/3", "WaitOp")
session:type "fg\n"
session:expect "shell%$ fg\n.*paused 0/3 [%dm ]+s\n├─ WaitOp [%dm ]+s\n├─ WaitOp [%dm ]+s\n└─ WaitOp [%dm ]+s$"
session:type "\26"
session:expect "[Ss]topped.*[Ss]topped.*\nshell%$$"
session:type "bg\n"
session:type "sleep 0.4; echo do''ne\n"
text = session:expect "done\n"
check.lacks(text, "paused 0/3", "WaitOp")
session:go(1)
session:type "wait\n"
text = session:expect "over\n"
check.lacks(text, "paused 0/3", "WaitOp")
session:type "exit\n"
session:finish()
