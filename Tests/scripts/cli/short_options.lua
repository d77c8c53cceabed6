-- The short options have the effects, the order and the errors of lua5.4.
local host = require "host"
local check = require "check"

for _, arguments in ipairs {
  { "-e", "print(1)" }, { "-eprint(1)" }, { "-e", "x = 1", "-e", "print(x)" }, { "-e", "" }, { "-e ", },
  { "-e", "error 'boom'", "-e", "print 'never'" }, { "-e", "x = = 1" }, { "-e", "return 1, 2" },
  { "-e", "print(...)", "--" }, { "-e", "print(arg[0], arg[-1], #arg)" },
  { "-l", "string", "-e", "print(string.len 'x')" }, { "-lstring", "-e", "print(string ~= nil)" },
  { "-l", "str=string", "-e", "print(str.upper 'a')" }, { "-lm=math", "-e", "print(m.pi)" },
  { "-l", "no.such.module" }, { "-l", "=string" }, { "-l", "a=b=c" }, { "-l", "" },
  { "-e", "require = nil", "-l", "string" }, { "-e", "require = print", "-l", "g=x", "-e", "print(g)" },
  { "-e", "setmetatable(_G, { __newindex = function(_, k) error(k, 0) end })", "-l", "g=string" },
  { "-W", "-e", "warn 'said'" }, { "-e", "warn 'unsaid'", "-W", "-e", "warn('a', 'b')" },
  { "-e", "warn '@on' warn 'x' warn '@off' warn 'y'" },
  { "-W", "-e", "setmetatable({}, { __gc = function() error 'in gc' end })" },
  { "-v", "-e", "print 'after the version'" }, { "-E", "-e", "print(package.path)" },
  { "-" }, { "--" }, { "-e", "print(1)", "-" }, { "--", "-" }, { "-e", "arg = 1", "-" },
  { "-e", "arg[1] = 100", "-", "1", "2" },
  { "-e", "arg = setmetatable({}, { __len = function() return 3 end })", "-" },
  { "-e", "arg = setmetatable({}, { __len = function() error 'no length' end })", "-" },
  { "-e", "error(setmetatable({}, { __tostring = function() return 'a\\0b' end }))" },
  -- Misuse: the message, then the usage.
  { "-x" }, { "-h" }, { "-Ex" }, { "-vv" }, { "-iv" }, { "-Wx" }, { "-e" }, { "-l" }, { "-e", "-v" },
  { "-l", "--", "x" }, { "-e", "print 'not run'", "-x" }, { "-e", "print 'not run'", "-e" },
} do
  host.same_arguments(arguments, { stdin = "print('stdin', ...)" })
end

-- A chunk that nobody asked for by name is forgiven, as there.
host.same_arguments({}, { stdin = "error 'x'" })
host.same_arguments({}, { stdin = "x = = 1" })

-- The version of Lua comes first.
local result = host.run(host.binary, { "-v" })
check.equal(result.status, 0)
check.equal(result.stdout, host.run("lua5.4", { "-v" }).stdout .. ("flowlua %s\n"):format(require "flow".version))
