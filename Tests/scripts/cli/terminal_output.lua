-- On a terminal the program itself prints escapes instead of control characters, wherever a text comes from.
-- clock: real: the script is another program
local check, flow, host = require "check", require "flow", require "host"

-- Runs a text on a terminal of its own; returns all that was written there.
local function terminal(options, text)
  return host.run("script", { "-qec", host.binary .. " " .. options .. [[ -e "$TEXT"]], "/dev/null" }, {
    environment = { TEXT = "local flow = require 'flow'\n" .. text, SHELL = "/bin/sh", TERM = "xterm", NO_COLOR = "1" },
  }).stdout
end

-- Texts from outside: they would set the title, clear the line, go up, and write from right to left.
local hostile = [[local hostile = "a\27]0;title\7\r\27[2K\27[A\xc2\x9b\xe2\x80\xaeb"]]
local escaped = [[a\x1B]0;title\x07\r\x1B[2K\x1B[A\u{9B}\u{202E}b]]
local function expect(options, text, ...)
  local shown = terminal(options, hostile .. "\n" .. text)
  check.lacks(shown, "\27]0", "\27[2K", "\27[A", "\7", "\xc2\x9b", "\xe2\x80\xae")
  for _, part in ipairs { ... } do check.contains(shown, (part:gsub("HOSTILE", function() return escaped end))) end
end

local fails = [[
  local program = { "sh", "-c", "printf '%s\n' \"$1\" >&2; exit 1", "sh", hostile }
  local CheckOp = flow.op("CheckOp", function(ctx)
    ctx:log(hostile)
    ctx:set("key", hostile)
    flow.exec(program):await()
  end)
]]
-- An error of the main chunk, one that nobody observes, and the last one of all.
expect("--no-progress", "error(hostile)", "flowlua: ", ": HOSTILE\r\n")
expect("--no-progress", "error(setmetatable({}, { __tostring = function() return hostile end }))", "flowlua: HOSTILE\r\n")
expect("--no-progress", fails .. "CheckOp:run()", "flowlua: CheckOp failed: ", "HOSTILE")
expect("--no-progress", "flow.op(hostile, function() error 'x' end):run()", "flowlua: HOSTILE failed: ")
expect("--no-progress", "flow.spawn(function() error(hostile) end)", " failed: ", "HOSTILE")
-- A line end and a tab in a message are what they are.
check.contains(terminal("", "error('a\\n\\tb', 0)"), "flowlua: a\r\n\tb\r\n")
-- Warnings.
expect("", "flow.deprecated(hostile, 'use ' .. hostile)", "HOSTILE is deprecated; use HOSTILE")
-- Output of options.
expect("--no-progress --summary", fails .. "CheckOp:run():wait()", "[CheckOp] HOSTILE\r\n", "add for key: HOSTILE\r\n")
expect("--no-progress --follow", fails .. "CheckOp:run():wait()", "[CheckOp] HOSTILE\r\n", "add for key: HOSTILE\r\n")
expect("--no-progress --summary=json", fails .. "CheckOp:run():wait()", '"key":"')
expect("--check", "flow.new(hostile):add(flow.op(hostile, { needs = { [hostile] = 'string' }, run = print })):run()",
  "[HOSTILE] plan:", "<HOSTILE>")
expect("--check", "print(flow.new(hostile):run().data)", "needs the outcome of 'HOSTILE'")
expect("--no-progress --report -", fails .. "CheckOp:run():wait()", "HOSTILE")
expect("--no-progress --trace -", fails .. "CheckOp:run():wait()", "CheckOp")
expect("--progress=plain", fails .. "CheckOp:run():wait()", "HOSTILE")
-- The output of the script, and of its programs, is its own.
check.contains(terminal("", hostile .. " io.write(hostile)"), "\27]0;title\7")
check.contains(terminal("", hostile .. " io.stderr:write(hostile)"), "\27]0;title\7")
check.contains(terminal("", "os.execute [[printf '\\033]0;title\\007']]"), "\27]0;title\7")
-- Elsewhere a message has all bytes.
check.contains(host.run(host.binary, { "-e", hostile .. " error(hostile)" }).stderr, "\27]0;title\7\r")
