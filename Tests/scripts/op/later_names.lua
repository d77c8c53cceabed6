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
later(flow, [[machine step any_step on forward back stay next continue finish retry context spawn
  resolved failed cancelled with_delay when_all_succeed when_all_finish when_any_finish exec ops]])
later(AnOp, "with")
later(blueprint, "case otherwise combine add_parallel add_finally check dot mermaid with")
later(run, [[await cancel next next_on_success next_on_error finally finally_on_success completed
  faulted cancelled result finished_early dot]])
local failed = flow.op("DeferOp", function(ctx) ctx:defer(print) end):run()
check.equal(failed.error.kind, "usage")
check.contains(failed.error.message, "later_names.lua", "'defer' isn't supported in this version")
check.equal(flow.op("ProgressOp", function(ctx) ctx:progress(1) end):run().error.kind, "usage")
for field, value in pairs { retry = 3, timeout = 10, thread = "worker" } do
  check.usage(function() flow.op("AnOp", { run = print, [field] = value }) end, "op", field, "version")
end
check.usage(function() blueprint:add(AnOp, { timeout = 5 }) end, "add", "#2", "version")
-- What nobody knows is nil, as everywhere in Lua.
for _, object in ipairs { flow, AnOp, blueprint, run } do
  check.equal(object.nothing, nil)
  check.equal(object[1], nil)
end
