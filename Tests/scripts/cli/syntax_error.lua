-- A syntax error ends with the message of lua5.4 and status 1.
local host = require "host"
local result = host.script("local x = = 1\n")
assert(result.status == 1 and result.stdout == "")
assert(result.stderr:find("$SCRIPT:1: unexpected symbol near '='", 1, true))
for _, text in ipairs {
  "local x = = 1\n", "if true then\n", "print('unfinished\n", "goto nowhere\n", "x = }\n", "\27Lua",
  "for i = 1 do end", "local t <const> = 1; t = 2", "return return", "'\\400'", "break",
} do
  host.same_script(text)
end
