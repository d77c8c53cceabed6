-- The table `arg` holds the command, the script and its arguments, and `...` holds the arguments.
local host = require "host"
host.same_script([[
  local first = 0
  while arg[first - 1] do first = first - 1 end
  print(first, #arg, arg[0], arg[first], arg[-1])
  print(select("#", ...), ...)
  for i = 1, #arg do print(i, arg[i]) end
]], { "one", "two words", "", "-e", "--help", "$HOME", "umlaut ä", "--" })
host.same_script("print(#arg, select('#', ...))", {})
