-- In a session, keys that nothing is bound to end a search, and a terminal of any width is one.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

local inputrc = flow.fs.temp_dir() .. "/inputrc"
flow.fs.write(inputrc, "")
local function session()
  local made = terminal.start([[print "ready"]], {
    options = { "-i" }, environment = { INPUTRC = inputrc, XDG_STATE_HOME = flow.fs.temp_dir() },
  })
  made:expect "ready\n>$"
  return made
end
local function finish(open)
  -- Whatever is in the line.
  open:type "\x15"
  open:type "print(6 * 7)\n"
  open:expect "\n42\n"
  open:type "\x04"
  local _, status = open:finish()
  check.equal(status, 0)
end

-- Ctrl-R, and a prefix with a key that isn't bound.
for _, keys in ipairs { "\x18\x05", "\x18\x0e", "\x18u", "\x18\x18", "\x1bOz" } do
  local open = session()
  open:type "\x12"
  open:expect "i%-search"
  for key in keys:gmatch "." do open:type(key) end
    finish(open)
end
-- The user's own choice stays.
flow.fs.write(inputrc, 'set isearch-terminators "x"\n')
local open = session()
open:type "\x12"
open:expect "i%-search"
open:type "x"
open:expect "\n> ?x?$"
finish(open)

-- Widths that no terminal has, one after the other, while a line is edited.
open = session()
open:type(("x = '%s'"):format(("long "):rep(60)))
for _, columns in ipairs { 1, 1000, 2, 5000, 3, 80, 5000, 1, 80 } do
  open:resize(columns, 36)
  open:type "y"
end
finish(open)
