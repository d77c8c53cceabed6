-- Arguments reach a script that a test's header names.
-- args: one two --three
assert(select("#", ...) == 3)
assert(table.concat(arg, " ") == "one two --three" and arg[0]:find("own_arguments.lua", 1, true))
