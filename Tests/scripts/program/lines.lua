-- The lines of a program arrive one by one, in order, with the name of their stream.
local flow, check = require "flow", require "check"

-- Leaves the loop at once.
local function first_line(program)
  for line in program:lines() do if line then return line end end
end
local function shell(text, options) return flow.exec({ "sh", "-c", text }, options) end
local function collect(program)
  local all = {}
  for line, stream in program:lines() do all[#all + 1] = stream .. ":" .. line end
  return table.concat(all, "|")
end

-- Each line is there before the program prints the next one.
local program = shell("echo ready; while read -r line; do echo \"got $line\"; done; echo over >&2",
  { stdin = "pipe" })
local seen = {}
for line, stream in program:lines() do
  seen[#seen + 1] = stream .. ":" .. line
  if #seen <= 3 then program:write(#seen, "\n") else program:close_stdin() end
end
check.equal(table.concat(seen, "|"),
  "stdout:ready|stdout:got 1|stdout:got 2|stdout:got 3|stderr:over")
check.equal(program:await().stdout, "")
check.equal(program.stderr, "")

-- A last line needs no newline; empty lines count; bytes are bytes.
check.equal(collect(shell "printf 'a\\n\\nb'"), "stdout:a|stdout:|stdout:b")
check.equal(collect(shell "printf '\\n'"), "stdout:")
check.equal(collect(shell "true"), "")
check.equal(collect(shell "printf 'a\\0b\\377\\r\\n'"), "stdout:a\0b\255\r")
check.equal(collect(shell "printf 'x' >&2"), "stderr:x")
local whole = {}
for line in shell("head -c 10000000 /dev/zero; echo; echo end"):lines() do whole[#whole + 1] = #line end
check.equal(table.concat(whole, " "), "10000000 3")

-- After a break the rest is collected.
program = shell("echo 1; echo 2; printf 3; echo error >&2")
check.equal(first_line(program), "1")
program:wait()
check.equal(program.stdout .. program.stderr, "2\n3error\n")
-- So it is with functions that use the line, if the loop is left by goto (an error of Lua 5.4.4).
program = shell "echo 1; echo 2"
local made
for line in program:lines() do
  made = function() return line end
  if made then goto left end
end
::left::
check.equal(program:await().stdout .. made(), "2\n1")
-- A second loop continues where the first one ended.
program = shell("echo 1; echo 2; read -r x; echo 3; echo 4", { stdin = "pipe" })
local first = {}
for line in program:lines() do
  first[#first + 1] = line
  if line == "2" then break end
end
program:write "\n"
for line in program:lines() do first[#first + 1] = line end
check.equal(table.concat(first, " "), "1 2 3 4")
-- A line that has come for a task which was cancelled before it continued is for the next one.
program = shell "sleep 0.01; printf '1\\n2\\n3\\n'"
local next_line = program:lines()
local second
local reader = flow.spawn(function()
  local line = next_line()
  second:cancel()
  return line
end)
second = flow.spawn(function() return next_line() end)
check.equal(reader:await(), "1")
second:wait()
check.equal(second.state, "cancelled")
check.equal(next_line(), "2")
check.equal(next_line(), "3")
check.equal(next_line(), nil)
-- The last words that a reader has left are in the error once.
program = shell "echo abc >&2; echo def >&2; exit 3"
for line in program:lines() do
  if line == "abc" then break end
end
check.equal(check.raises(function() program:await() end).message:match "status 3: (.*)", "def")
program = shell "printf 'x\\nabc' >&2; sleep 0.02; printf def >&2; exit 3"
for line in program:lines() do
  if line == "x" then break end
end
check.equal(check.raises(function() program:await() end).message:match "status 3: (.*)", "abcdef")
-- At any time after the end.
program = shell "echo out; echo err >&2"
program:wait()
check.equal(collect(program), "stdout:out|stderr:err")
check.equal(program.stdout, "out\n")

-- Two loops share the lines of one program.
program = shell "for i in 1 2 3 4 5 6; do echo $i; done"
local sum = 0
local function add() for line in program:lines() do sum = sum + line flow.sleep(0.001) end end
local readers = { flow.spawn(add), flow.spawn(add) }
flow.when_all_succeed(readers):await()
check.equal(sum, 21)

-- The loop ends with the program, however it ends; its error has the last line.
program = shell "echo out; echo 'no space left' >&2; exit 3"
check.equal(collect(program):gsub("|?stderr:no space left|?", ""), "stdout:out")
local e = check.raises(function() program:await() end)
check.equal(e.message:match "status 3: (.*)", "no space left")
check.equal(e.stdout, "")
program = flow.exec { "no-such-program" }
check.equal(collect(program), "")
check.equal(program:wait() and program.error.kind, "error")

-- Wrong use.
check.usage(function() shell("true", { capture = false }):lines() end, "capture = false")
local other = flow.spawn(function() end)
check.usage(function() program.lines(other) end, "lines", "flow.exec")
check.usage(function() local lines = program.lines lines(1) end, "lines", "flow.exec")
check.equal(rawequal(other.lines, nil), true)
local iterator, _, _, closing = shell("echo 1"):lines()
check.equal(tostring(iterator), "lines of a program")
check.equal(iterator, closing)
check.equal(iterator(), "1")
check.equal(iterator(), nil)
check.raises(function() iterator.x = 1 end, "lines")
