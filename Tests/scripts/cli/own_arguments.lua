-- The arguments in a test's first lines reach the script.
-- args: one two --three
assert(select("#", ...) == 3)
assert(table.concat(arg, " ") == "one two --three" and arg[0]:find("own_arguments.lua", 1, true))
