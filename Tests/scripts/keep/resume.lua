-- A kept run that failed or was killed continues: what had finished isn't executed again, and its values are there.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local script = kept.script [[
local AskOp = flow.op("AskOp", function(ctx) effect "ask" ctx:set("name", "Ada") ctx:set("gone", nil) end)
local ListOp = flow.op("ListOp", { needs = { name = "string" }, gives = { list = "table" }, run = function(ctx)
  effect "list"
  ctx:set("list", { 1, 2.5, "three", { deep = { true, [7] = "seven" } }, false, math.huge, "\0\255" })
end })
local ItemOp = flow.op("ItemOp", { needs = { item = "any" }, gives = { text = "string" }, run = function(ctx)
  effect("item" .. ctx.index)
  if ctx.index == 5 and os.getenv "END" == "fail" then ctx:fail "no" end
  if ctx.index == 5 and os.getenv "END" == "kill" then
    flow.sleep(0.05)
    os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
  end
  ctx:set("text", tostring(ctx:get "item"):sub(1, 5))
end })
local LastOp = flow.op("LastOp", { needs = { texts = "string[]" }, run = function(ctx)
  effect "last"
  print(table.concat(ctx:get "texts", "|"), ctx:get("list")[4].deep[7], #ctx:get("list")[7])
end })
flow.new("work"):add(AskOp):add(ListOp)
  :add_grouped(ItemOp, { input = "list", output = "texts", max_concurrent = 1 }):add(LastOp):run()
]]

for _, ending in ipairs { "fail", "kill" } do
  if ending == "kill" then flow.fs.remove(script.folder .. "/.flowlua", { recursive = true }) end
  assert(script:run({ "--keep", environment = { END = ending } }).status ~= 0)
  script:expect_effects("ask", "list", "item1", "item2", "item3", "item4", "item5")
  local log, result = script:resume()
  check.equal(result.status, 0)
  check.equal(result.stdout, "1|2.5|three|table|false|inf|\0\255\tseven\t2\n")
  script:expect_effects("item5", "item6", "item7", "last")
  local id = log:match "%[AskOp%] Kept from run (r%w+)\n"
  assert(id, log)
  for _, name in ipairs { "ListOp", "ItemOp #1", "ItemOp #4" } do
    check.contains(log, "[" .. name .. "] Kept from run " .. id)
  end
  check.contains(log, "[ItemOp #5] Again: it had " .. (ending == "fail" and "failed: no" or "started, but not finished"))
  check.lacks(log, "[ItemOp #6] Again")
  check.lacks(log, "[ItemOp #6] Kept")
end

-- It has finished: the next --resume begins a new run, and so does --keep.
script:resume()
check.equal(#script:effects(), 10)
script:run { "--keep" }
check.equal(#script:effects(), 10)
