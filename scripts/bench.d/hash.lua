-- Prints the SHA-256 of a file: hash.lua FILE
print(require "flow.fs".hash(arg[1]))
