-- A script's own modules are found and may use flow and sleep.
local name = os.tmpname()
local file = assert(io.open(name, "w"))
file:write [[
  local flow = require "flow"
  flow.sleep(0.001)
  return { name = ..., SayOp = flow.op("SayOp", function(ctx, text) ctx:log(text) end) }
]]
file:close()
package.path = name
local said = require "anything"
os.remove(name)
assert(said.name == "anything")
local run = require("flow").new("said"):add(said.SayOp("from a module")):run()
assert(run.ok and run:summary():find("[SayOp] from a module", 1, true))
