-- The module has two names, and -W reports a script's own flow.lua.
local host, check = require "host", require "check"
assert(rawequal(require "flowlua", require "flow"))
assert(rawequal(require "flow.testing", require "flowlua.testing"))
-- In a worker, too.
local run = require("flow").op("WorkOp", { thread = "worker", gives = { same = "boolean" },
  run = function(ctx) ctx:set("same", rawequal(require "flow", require "flowlua")) end }):run()
assert(run.ok and run.data.same, run.error)

local folder = io.popen("mktemp -d"):read("l")
local file = assert(io.open(folder .. "/flow.lua", "w"))
file:write "return 'own'"
file:close()
local options = { environment = { LUA_PATH = folder .. "/?.lua" } }
local warning = "Lua warning: '" .. folder .. "/flow.lua' isn't what require \"flow\" loads"
local said = host.run(host.binary, { "-W", "-e", "print(type(require 'flow'))" }, options)
check.contains(said.stderr, warning)
check.equal(said.stdout, "table\n")
-- No warning without -W, nor without such a file; and the file is to be had.
local own = "package.preload.flow = nil print(require 'flow', require('flowlua').op ~= nil)"
said = host.run(host.binary, { "-e", own }, options)
check.equal(said.stdout, "own\ttrue\n")
check.equal(said.stderr, "")
check.equal(host.run(host.binary, { "-W", "-e", "require 'flow'" }).stderr, "")
os.execute("rm -rf '" .. folder .. "'")

-- A name that is nearly one of them, or a part of one.
for name, meant in pairs { ["flow.jsn"] = "flow.json", json = "flow.json", flwo = "flow", ["flowlua.htp"] = "flowlua.http" } do
  local ok, problem = pcall(require, name)
  check.equal(ok, false)
  check.contains(problem, "\n\tdid you mean '" .. meant .. "'?")
end
check.lacks(select(2, pcall(require, "flute")), "mean")
