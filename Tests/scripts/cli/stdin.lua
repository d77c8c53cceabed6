-- A script can read standard input or come from standard input.
local host = require "host"
host.same_script("print(io.read('l', 'n', 'a'))", {}, { stdin = "first\n42 rest\nand more" })
host.same_script("for line in io.lines() do print('[' .. line .. ']') end", {}, { stdin = "a\n\nb" })
host.same_script("print(io.read('a') == '\\0\\1\\255\\n')", {}, { stdin = "\0\1\255\n" })
host.same_script("print(io.read())", {}, { stdin = "" })
host.same_arguments({ "-", "one", "two" }, { stdin = "print(arg[0], arg[1], ...)" })
host.same_arguments({ "-" }, { stdin = "error 'from stdin'" })
host.same_arguments({ "-" }, { stdin = "x = = 1" })
host.same_arguments({}, { stdin = "print('no arguments', arg[0])" })
host.same_arguments({ "-" }, { stdin = "#!shebang\nprint(io.read())\nrest" })
