-- Items may be of any type, and tables keep their identity.
local flow, check = require "flow", require "check"
local items = { 1, 1.5, "text", true, false, {}, print, coroutine.create(print), io.stdout, -0.0 }
local EchoOp = flow.op("EchoOp", {
  needs = { item = "any" }, gives = { same = "any" }, run = function(ctx) ctx:set("same", ctx:get("item")) end,
})
local run = flow.new("echo"):add_grouped(EchoOp, { input = "list", output = "out" }):run { list = items }
assert(run.ok, run.error)
for i, item in ipairs(items) do check.equal(run.data.out[i], item, "item " .. i) end
check.equal(#run.data.out, #items)
