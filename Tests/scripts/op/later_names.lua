-- Names of the API that are still to come raise an error, instead of being nil.
local flow, check = require "flow", require "check"
local blueprint = flow.new("later")
local AnOp = flow.op("AnOp", function() end)
local run = AnOp:run()

local function later(object, names)
  for name in names:gmatch("%S+") do
    check.usage(function() return object[name] end, name, "isn't supported in this version")
  end
end
check.usage(function() run:next(print, { thread = "worker" }) end, "next", "#2", "thread", "version")
check.usage(function() flow.op("AnOp", { run = print, thread = "worker" }) end, "op", "thread", "version")
-- What nobody knows is nil, as everywhere in Lua.
for _, object in ipairs { flow, AnOp, blueprint, run } do
  check.equal(object.nothing, nil)
  check.equal(object[1], nil)
end
