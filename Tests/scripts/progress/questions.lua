-- Questions are asked at the terminal one at a time, again after an answer of another type, and not any more once a message has come.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

local session = terminal.start [[
  local AskOp = flow.op("AskOp", { needs = { name = "string" }, run = function(ctx)
    local name = ctx:get "name"
    print(name, ctx:wait_for(name, { type = name == "ok" and "boolean" or "integer", ask = "Is it " .. name .. "?" }))
  end })
  local run = flow.new("ask"):data { names = { "ok", "count", "late" } }
    :add_grouped(AskOp, { input = "names", as = "name" }):start()
  pause(1)
  flow.send(run, "late", 7)
  run:await()
]]
session:expect "Is it ok%? %(yes or no%)$"
session:type "maybe\n"
session:expect "boolean expected, not 'maybe'\nIs it ok%? %(yes or no%)$"
session:type "yes\n"
session:expect "Is it count%?$"
session:type "3\n"
session:expect "Is it late%?$"
session:go(1)
local text, status = session:finish()
check.equal(status, 0)
check.match(text, "ok%s+true\n", "count%s+3\n", "late%s+7$")

-- In a kept run an answer is a message, and the end of the input leaves the run to another process.
session = terminal.start([[
  local PayOp = flow.op("PayOp", { effect = "once", run = function(ctx)
    print "paying"
    if not flow.fs.exists "go1" then
      flow.fs.write("go1", "")
      os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
    end
  end })
  PayOp:run()
]], { options = { "--resume" }, shell = true, columns = 200 })
session:expect "shell%$$"
session:type("cd " .. session.folder .. "; $RUN\n")
session:expect("paying", "Killed.*shell%$$")
session:type "$RUN\n"
session:expect "%[PayOp%] had started in run r%w+, and may have had its effect: done, again or fail%?$"
session:type "\4"
session:expect("\nr%w+ waits for <PayOp> .* PayOp=done %-%-resume /.*/script.lua /.*/\n?go\nshell%$$")
session:type "echo $?; $RUN\n"
session:expect("\n75\n", "or fail%?$")
session:type "perhaps\n"
session:expect('"done"|"again"|"fail" expected, not \'perhaps\'\n')
session:type "again\n"
session:expect("\npaying\n.*shell%$$")
session:type "echo $?; exit\n"
check.match((session:finish()), "\n0$")

-- While another process writes into the store, an answer blocks nothing else.
session = terminal.start([[
  local AskOp = flow.op("AskOp", function(ctx) print("it is", ctx:wait_for("n", { ask = "Which one?" })) end)
  local TickOp = flow.op("TickOp", function() pause(1) print "ticked" end)
  flow.new("both"):add_parallel(AskOp, TickOp):run()
]], { options = { "--keep" } })
session:expect "Which one%?$"
local busy = flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON", "-c", [[
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
store.execute("BEGIN IMMEDIATE")
print("busy", flush=True)
sys.stdin.read()
store.execute("COMMIT")
]], session.folder .. "/.flowlua/store.sqlite" }, { stdin = "pipe" })
check.equal((busy:lines()()), "busy")
session:type "seven\n"
session:expect "seven\n"
session:go(1)
check.lacks(session:expect "ticked", "writing it for too long")
busy:close_stdin()
busy:await()
text, status = session:finish()
check.equal(status, 0)
check.match(text, "it is%s+seven$")

-- In a session a question is asked while a line waits, and again by the next line that does.
session = terminal.start([[
  local AskOp = flow.op("AskOp", function(ctx) print("it is", ctx:wait_for("n", { ask = "Which one?" })) end)
  function ask() run = AskOp:start() end
]], { options = { "-i" }, environment = { FLOWLUA_HISTORY = "" } })
session:expect ">$"
session:type "ask() print(run.state)\n"
session:expect("pending\n>$")
session:type "run:wait(0.2)\n"
session:expect("Which one%?\nfalse\n>$")
session:type "run:wait()\n"
session:expect "run:wait%(%)\nWhich one%?$"
session:type "seven\n"
session:expect("it is%s+seven\ntrue\n>$")
session:type "\4"
check.equal(select(2, session:finish()), 0)
