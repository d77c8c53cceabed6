-- Output of the script and of its programs passes above the tree untouched, and nothing of the tree remains.
-- python: pyte
-- clock: real: the terminal is another program
local check, terminal = require "check", require "terminal"

local session = terminal.start [[
  local WaitOp = flow.op("WaitOp", function() pause(5) end)
  flow.spawn(function()
    pause(1)
    for i = 1, 60 do print("line " .. i) end
    io.write("half ")
    io.flush()
    local between = flow.op("BetweenOp", function() error("in between", 0) end):start()
    pcall(between.await, between)
    pause(2)
    io.write("a line\n")
    flow.exec({ "sh", "-c", "echo from sh; echo error of sh >&2" }, { tee = true }):await()
    io.stderr:write("to stderr\n")
    pause(3)
    flow.exec({ "sh", "-c", "printf 'a question? '; read answer; echo \"got $answer\"" },
      { capture = false, stdin = "inherit" }):await()
    pause(4)
    local run = flow.op("FailOp", function() error("above\na half line", 0) end):start()
    pcall(run.await, run)
  end)
  flow.new("outer"):add(WaitOp):add(flow.new("inner"):add(WaitOp)):run()
]]
session:expect "outer 0/2 [%dm ]+s\n└─ WaitOp [%dm ]+s$"
session:go(1)
local text = session:expect "half$"
check.lacks(text, "WaitOp")
session:go(2)
text = session:expect "to stderr\n.-outer 0/2 [%dm ]+s\n└─ WaitOp [%dm ]+s$"
check.contains(text, "half a line\n", "from sh\n", "\nBetweenOp failed: in between\n")
local expected = {}
for i = 1, 60 do expected[i] = "line " .. i end
expected = table.concat(expected, "\n") .. "\nhalf a line\n"
check.equal(text:sub(1, #expected), expected)
check.contains(text, "error of sh\n")
session:go(3)
check.lacks(session:expect "a question%?$", "WaitOp")
session:type "yes\n"
text = session:expect "got yes\nouter 0/2 [%dm ]+s\n└─ WaitOp [%dm ]+s$"
session:go(4)
text = session:expect "FailOp failed: above\na half line\nouter 0/2 [%dm ]+s\n└─ WaitOp [%dm ]+s$"
session:go(5)
local status
text, status = session:finish()
check.equal(status, 0)
check.lacks(text, "outer", "WaitOp")
check.equal(text:sub(1, #expected), expected)
assert(text:find "to stderr\n.-a question%? yes\ngot yes\nFailOp failed: above\na half line$", text)
