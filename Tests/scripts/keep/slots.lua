-- While the end of an item is being written, another one starts: a crash leaves less than twice as many in doubt as may execute.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

-- Its items end at once, and their ends can't be on the disk before the next turn of the loop.
local script = kept.script [[
local limit, effect = math.tointeger(arg[1]), arg[2] ~= "" and arg[2] or nil
local ItemOp = flow.op("ItemOp", { effect = effect, needs = { item = "integer" }, gives = { out = "integer" },
  run = function(ctx) ctx:set("out", ctx:get "item") end })
local list = {}
for i = 1, 40 do list[i] = i end
local run = flow.new("work"):data { list = list }
  :add_grouped(ItemOp, { input = "list", output = "outs", max_concurrent = limit }):run()
local open, most = 0, 0
for _, event in ipairs(run:events()) do
  if event.op == "ItemOp" then
    open = open + (event.kind == "start" and 1 or event.kind == "finish" and -1 or 0)
    most = math.max(most, open)
  end
end
assert(open == 0 and #run.data.outs == 40)
print(most)
]]
for _, case in ipairs { { "1", "", 1 }, { "2", "", 3 }, { "8", "", 15 }, { "8", "once", 8 } } do
  local result = script:run { "--keep", arguments = { case[1], case[2] } }
  check.equal(result.stderr, "")
  check.equal(result.stdout, case[3] .. "\n")
end
