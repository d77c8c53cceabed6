-- `flow.is_terminal` says whether a standard stream is a terminal.
-- clock: real: a pseudo-terminal is a program
local flow, check, host = require "flow", require "check", require "host"

local text = [[
  local flow = require "flow"
  for _, name in ipairs { "stdin", "stdout", "stderr" } do
    io.stderr:write(name, " ", tostring(flow.is_terminal(name)), " ", tostring(flow.is_terminal(io[name])), "\n")
  end]]
check.equal(host.run(host.binary, { "-e", text }).stderr,
  "stdin false false\nstdout false false\nstderr false false\n")
-- The output of `script` is a terminal; all three streams of its program are.
local quoted = "'" .. host.binary .. "' -e '" .. text:gsub("'", [['\'']]) .. "' >/dev/null"
local shown = flow.exec({ "script", "--quiet", "--command", quoted, "/dev/null" }, { check = false }):await().stdout
check.contains(shown, "stdin true true", "stdout false false", "stderr true true")

check.usage(function() flow.is_terminal() end, "is_terminal", "#1", "io.stdin, io.stdout, io.stderr", "got no value")
check.usage(function() flow.is_terminal "stdio" end, "is_terminal", "#1", "got 'stdio'")
check.usage(function() flow.is_terminal(1) end, "is_terminal", "#1", "got number")
check.usage(function() flow.is_terminal({}) end, "is_terminal", "#1", "got table")
check.usage(function() flow.is_terminal(io.tmpfile()) end, "is_terminal", "#1", "got FILE*")
