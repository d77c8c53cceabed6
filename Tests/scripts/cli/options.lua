-- The options of the stand-alone interpreter.
local host = require "host"
for _, arguments in ipairs {
  { "-e", "print(1 + 1)" },
  { "-e", "print 'a'", "-e", "print 'b'" },
  { "-eprint 'joined'" },
  { "-e", "error 'in -e'" },
  { "-e", "x = = 1" },
  { "-e", "print(#arg, arg[0], arg[-1])" },
  { "-e" },
  { "-l", "string", "-e", "print(string.len 'abc')" },
  { "-l", "s=string", "-e", "print(s.len 'abc')" },
  { "-l", "no_such_module" },
  { "-l" },
  { "-W", "-e", "warn('visible')" },
  { "-e", "warn('invisible')" },
  { "-e", "warn('@on') warn('now ', 'visible') warn('@off') warn('no')" },
  { "-E", "-e", "print(package.path)" },
  { "-x" },
  { "-ex", "-y" },
  { "-v=1" },
  { "--", "/no/such/script" },
  { "-e", "print(...)", "--" },
  { "-i", "-x" },
} do
  host.same_arguments(arguments)
end
