-- A script's own modules are found and may use flow and sleep.
local check, flow, host = require "check", require "flow", require "host"
local name = os.tmpname()
local file = assert(io.open(name, "w"))
file:write [[
  local flow = require "flow"
  flow.sleep(0.001)
  return { name = ..., SayOp = flow.op("SayOp", function(ctx, text) ctx:log(text) end) }
]]
file:close()
local path = package.path
package.path = name
local said = require "anything"
package.path = path
os.remove(name)
assert(said.name == "anything")
local run = require("flow").new("said"):add(said.SayOp("from a module")):run()
assert(run.ok and run:summary():find("[SayOp] from a module", 1, true))

-- A module beside the script is found after all others, whatever the working directory is, in workers as well.
local folder = flow.fs.temp_dir()
local function write(path, text) flow.fs.write(folder .. "/" .. path, text) end
flow.fs.mkdir(folder .. "/own/deep")
write("own/beside.lua", "return ...")
write("own/deep/init.lua", "return 'deep'")
write("own/wrong.lua", "return +")
write("own/both.lua", "return 'beside the script'")
write("both.lua", "return 'in the working directory'")
write("own/script.lua", [[
  print((require "beside"), (require "deep"), (require "both"))
  local flow = require "flow"
  local run = flow.op("WorkOp", { thread = "worker", run = function() print((require "beside")) end }):run()
  print(run.ok, run.error)
  print(select(2, pcall(require, "wrong")))
  print(select(2, pcall(require, "missing")))
]])
local result = flow.exec({ host.binary, "own/script.lua" }, { cwd = folder, env = { LUA_PATH = "./?.lua", LUA_CPATH = "./?.so" } }):await()
check.equal(result.stdout, [[
beside	deep	in the working directory
beside
true	nil
error loading module 'wrong' from file 'own/wrong.lua':
	own/wrong.lua:1: unexpected symbol near '+'
module 'missing' not found:
	no field package.preload['missing']
	no file './missing.lua'
	no file './missing.so'
]])
result = flow.exec { host.binary, folder .. "/own/script.lua" }:await()
check.match(result.stdout, "^beside\tdeep\tbeside the script\n")
-- The path of Lua's own modules stays as it was.
check.equal(host.run(host.binary, { "-e", "print(package.scriptpath)" }).stdout, "nil\n")
-- Code may remove what the search needs; another module is then missing, as lua5.4 has it.
for _, text in ipairs { "package.scriptpath = nil", "package.searchers = nil" } do
  write("own/taken.lua", "print(pcall(require, 'nowhere'))")
  local taken = flow.exec({ host.binary, "-e", text, "own/taken.lua" }, { cwd = folder }):await()
  check.match(taken.stdout, "^false\t")
  check.lacks(taken.stdout, "searchpath", "scriptpath")
end
write("own/taken.lua", "package.scriptpath = nil print(pcall(require, 'nowhere'))")
check.match(flow.exec({ host.binary, "own/taken.lua" }, { cwd = folder }):await().stdout, "^false\tmodule 'nowhere' not found:")
