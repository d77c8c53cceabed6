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
later(flow, [[context spawn
  resolved failed cancelled with_delay when_all_succeed when_all_finish when_any_finish]])
local continuations = "next next_on_success next_on_error finally finally_on_success"
later(run, continuations)
later(flow.exec { "true" }, continuations)
check.usage(function() flow.op("AnOp", { run = print, thread = "worker" }) end, "op", "thread", "version")
-- What nobody knows is nil, as everywhere in Lua.
for _, object in ipairs { flow, AnOp, blueprint, run } do
  check.equal(object.nothing, nil)
  check.equal(object[1], nil)
end
