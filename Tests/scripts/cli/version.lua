-- -v prints Lua's own line first.
local host = require "host"
local ours = host.run(host.binary, { "-v" })
local theirs = host.run("lua5.4", { "-v" })
assert(ours.status == 0 and ours.stderr == "")
assert(ours.stdout:sub(1, #theirs.stdout) == theirs.stdout, ours.stdout)
