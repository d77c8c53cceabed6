-- A program that asks on the terminal gets it until it ends, one program at a time; then flowlua has it again.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

-- It reads the terminal, or changes its modes first as ssh does.
local plain = [[printf 'Name %s: ' $0 >/dev/tty; read -r x </dev/tty; echo "got $x"]]
local hidden = [[stty -echo </dev/tty; printf 'Password %s: ' $0 >/dev/tty; read -r x </dev/tty; stty echo </dev/tty; echo "got $x"]]
local session = terminal.start(([[
  local first = flow.exec { "sh", "-c", %q, "1" }
  pause(1)
  local second = flow.exec({ "sh", "-c", %q, "2" })
  print(first:await().stdout)
  print(second:await().stdout)
  print("line", io.read "l")
]]):format(hidden, plain))
-- Its question appears once it has the terminal, the other one at once.
session:expect "Password 1:$"
session:go(1)
session:expect "Password 1: *Name 2:$"
session:type "secret\n"
session:expect "got secret\n*$"
session:type "Ada\n"
session:expect "got secret\n+Ada\ngot Ada\n*$"
session:type "own\n"
local text, status = session:finish()
check.equal(status, 0)
check.match(text, "own\nline +own")
check.lacks(text, ":secret", ": secret")

-- The tree steps aside, and says who asks, as it may have covered the question.
session = terminal.start(([[
  local AskOp = flow.op("AskOp", function() pause(1) print(flow.exec { "sh", "-c", %q, "3" }:await().stdout) pause(2) end)
  flow.new("work"):add(AskOp):run()
]]):format(plain))
session:expect "work [^\n]*\n└─ AskOp [^\n]*$"
session:go(1)
session:expect "'sh' asks on the terminal$"
check.lacks(session:text(), "AskOp")
session:type "Bob\n"
session:expect "got Bob\n+work [^\n]*\n└─ AskOp [^\n]*$"
session:go(2)
text, status = session:finish()
check.equal(status, 0)

-- Ctrl-C at the question interrupts the script; Ctrl-Z pauses it, and in the foreground the question is asked again.
session = terminal.start(([[ flow.exec { "sh", "-c", %q, "4" }:await() ]]):format(plain))
session:expect "Name 4:$"
session:type "\3"
text, status = session:finish()
-- The path of the binary may fill the line.
check.contains(text:gsub("\n", ""), "interrupted!")
check.equal(status, -2)
session = terminal.start(([[ print(flow.exec { "sh", "-c", %q, "5" }:await().stdout) ]]):format(plain), { shell = true })
session:type "$RUN\n"
session:expect "Name 5:$"
session:type "\26"
session:expect "[Ss]topped.*\nshell%$$"
session:type "fg\n"
session:expect "shell%$ fg\n[^\n]+$"
session:type "Eve\n"
session:expect "got Eve\n+shell%$$"
session:type "exit\n"
session:finish()

-- In the background flowlua is stopped as any job that reads the terminal.
session = terminal.start(([[ print(flow.exec { "sh", "-c", %q, "6" }:await().stdout) ]]):format(plain), { shell = true })
session:type "$RUN &\n"
session:expect "Name 6:"
for _ = 1, 600 do
  session:type "jobs\n"
  if session:text():find "[Ss]topped" then break end
  flow.sleep(0.1)
end
session:expect "[Ss]topped"
session:type "fg\n"
session:expect "fg\n[^\n]+$"
session:type "Joe\n"
session:expect "got Joe\n+shell%$$"
session:type "exit\n"
session:finish()
