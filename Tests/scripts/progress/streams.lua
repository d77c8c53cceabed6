-- The tree appears if stdout is a file, whatever the script writes there, and not if a program reads stdout.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

local script = [[
  io.write("half a line")
  io.flush()
  flow.op("WaitOp", function() pause(1) end):run()
  print " to its end"
]]
local session = terminal.start(script, { shell = true })
session:type "$RUN >${RUN##* }.out\n"
session:expect "out\nWaitOp [%dm ]+s$"
session:go(1)
session:expect "out\nshell%$$"
check.equal(flow.fs.read(session.folder .. "/go.out"), "half a line to its end\n")
session:type "exit\n"
session:finish()

-- A program that reads stdout may write to the terminal at any time.
session = terminal.start([[
  flow.spawn(function()
    for i = 1, 8 do
      flow.sleep(0.1)
      io.write(i, " ")
      io.flush()
    end
    pause(1)
  end)
  flow.op("WaitOp", function() pause(1) end):run()
]], { shell = true })
session:type "$RUN | cat\n"
session:expect "1 2 3 4 5 6 7 8$"
session:go(1)
session:type "exit\n"
session:finish()

-- A last line that a program leaves stays above the tree; an empty line isn't added.
session = terminal.start [[
  flow.op("WaitOp", function()
    flow.exec({ "sh", "-c", "printf 'a part'" }, { capture = false }):await()
    pause(1)
    flow.exec({ "sh", "-c", "echo whole" }, { capture = false }):await()
    pause(2)
  end):run()
]]
session:expect "^a part\nWaitOp [%dm ]+s$"
session:go(1)
session:expect "^a part\nwhole\nWaitOp [%dm ]+s$"
session:go(2)
check.equal(session:finish(), "a part\nwhole")
