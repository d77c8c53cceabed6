-- flowlua reports an error object of the main chunk like lua5.4.
local host = require "host"
for _, text in ipairs {
  "error {}",
  "error(nil)",
  "error()",
  "error(42)",
  "error(4.5)",
  "error(true)",
  "error(print)",
  "error(coroutine.create(print))",
  "error(io.stdout)",
  "error { message = 'x' }",
  "error(setmetatable({}, { __tostring = function() return 'as text' end }))",
  "error(setmetatable({}, { __tostring = function() return 1 end }))",
  "error(setmetatable({}, { __tostring = function() error 'in tostring' end }))",
  "error(setmetatable({}, { __tostring = function() return 'two\\nlines' end }))",
  "error(setmetatable({}, { __name = 'Named' }))",
  "error('bytes \\0 \\255 end')",
  "error('')",
} do
  host.same_script(text)
end
