-- The process may exit at any moment while workers work: as often as arg[1] says, 20 times by default.
local check = require "check"
local host = require "host"
local text = [[
local flow = require "flow"
local LoopOp = flow.op("LoopOp", { thread = "worker", run = function() while true do end end })
local ItemOp = flow.op("ItemOp", {
  thread = "worker", primary_input = "n", primary_output = "m",
  run = function(ctx)
    if ctx:get("n") % 50 == 0 then flow.sleep(0.0001) end
    ctx:log("at", ctx.index)
    ctx:set("m", { ctx:get("n") })
  end,
})
local ns = {}
for i = 1, 10000 do ns[i] = i end
LoopOp:start()
local group = flow.new("g"):data { ns = ns }
  :add_grouped(ItemOp, { input = "ns", output = "ms", max_concurrent = 3 }):start()
flow.resolved(1):next(function() while true do end end, { thread = "worker" })
flow.sleep(tonumber(arg[2]))
if arg[1] == "cancel" then group:cancel() end
os.exit(7, arg[1] == "close")
]]
local kinds = { "plain", "close", "cancel" }
for i = 1, tonumber(arg[1] or 20) do
  local kind = kinds[i % 3 + 1]
  local result = host.script(text, { kind, tostring(i % 7 / 1000) }, { before = { "--workers", "3" } })
  check.equal(result.status, 7, kind .. ": " .. result.stderr)
  check.equal(result.stderr, "")
end
