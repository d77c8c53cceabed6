-- A garbage collection at every step disturbs no wait.
local flow, check = require "flow", require "check"
collectgarbage("setpause", 0)
collectgarbage("incremental", 0, 1000)
local WorkOp = flow.op("WorkOp", {
  needs = { item = "string" }, gives = { out = "table" },
  run = function(ctx)
    local parts = {}
    for part in coroutine.wrap(function()
      for i = 1, 5 do flow.sleep(0.0001) coroutine.yield(ctx:get("item") .. i) end
    end) do
      parts[#parts + 1] = part
      collectgarbage("step")
    end
    ctx:set("out", parts)
  end,
})
local list = {}
for i = 1, 60 do list[i] = "item" .. i .. "." end
local run = flow.new("work"):data { list = list }
  :add_grouped(WorkOp, { input = "list", output = "out", max_concurrent = 7 }):run()
assert(run.ok, run.error)
for i = 1, 60 do check.equal(table.concat(run.data.out[i], " "):match("^%S+"), "item" .. i .. ".1") end
