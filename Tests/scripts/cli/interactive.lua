-- A session without a terminal behaves as lua5.4 does, except for the version line.
local host = require "host"
local check = require "check"

local function same(lines, ...)
  local arguments = { ... }
  arguments[#arguments + 1] = "-i"
  local ours = host.run(host.binary, arguments, { stdin = lines })
  local theirs = host.run("lua5.4", arguments, { stdin = lines })
  check.equal(ours.stdout:gsub("flowlua %S+\n", "", 1), theirs.stdout, lines)
  check.equal(ours.stderr, theirs.stderr, lines)
  check.equal(ours.status, theirs.status, lines)
end

same ""
same "1 + 1\n=2, nil, 'x'\nprint 'said'\nx = 5\nx\n"
same "for i = 1, 2 do\nprint(i)\nend\n\nlocal function f()\n\nreturn 1 end return f()"
same "x = = 1\nx =\n1\nx\n"
same "error 'a'\nerror {}\nerror()\nnil + 1\n"
same "a = [[b\nc\nd]]\n=a\n"
-- Where lua5.4 says (null).
local result = host.run(host.binary, { "-i" }, { stdin = "if true then" })
check.equal(result.stderr, "stdin:1: 'end' expected near <eof>\n")
same "return\n;\n--\n"
same("=1\n=2\n", "-e", "_PROMPT, _PROMPT2 = '', ''")
same("=1\nx =\n2\n", "-e", "_PROMPT = setmetatable({}, { __tostring = function() return 'p' end })")
same("10\n", "-e", "print = nil")
same "os.exit(3)"
same "setmetatable({}, { __gc = function() print 'collected' end }) x = nil"
