-- os.exit sets the exit status, with and without closing the state.
local host = require "host"
for _, text in ipairs {
  "", "return", "return 1", "return false", "os.exit()", "os.exit(true)", "os.exit(false)",
  "os.exit(0)", "os.exit(1)", "os.exit(2)", "os.exit(7, true)", "os.exit(255)", "os.exit(256)",
  "os.exit(-1)", "os.exit(3.0)", "error('x', 0)", "error()", "os.exit(2.5)", "os.exit('x')",
  "local t <close> = setmetatable({}, { __close = function() print 'closed' end }) os.exit(4, true)",
  "local t <close> = setmetatable({}, { __close = function() print 'closed' end }) os.exit(4)",
  "setmetatable({}, { __gc = function() print 'collected' end })",
  "setmetatable({}, { __gc = function() print 'collected' end }) os.exit(5, true)",
  "setmetatable({}, { __gc = function() print 'collected' end }) os.exit(5)",
  "coroutine.wrap(function() os.exit(6) end)()",
  "pcall(os.exit, 8)",
} do
  host.same_script(text)
end
