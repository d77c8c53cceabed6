-- Strings are byte strings: all 256 bytes pass as value, key and log text.
local flow, check = require "flow", require "check"
local all = {}
for i = 0, 255 do all[#all + 1] = string.char(i) end
all = table.concat(all)
local BytesOp = flow.op("BytesOp", function(ctx)
  ctx:set("value", all)
  check.equal(ctx:get("value", "string"), all)
  check.equal(ctx:get("value"), all)
  for _, length in ipairs { 0, 1, 40, 41, 255, 256, 257, 5000 } do
    local text = ("\0b"):rep(length // 2 + 1):sub(1, length)
    ctx:set("text", text)
    check.equal(ctx:get("text"), text)
  end
  ctx:set(all, "under bytes")
  check.equal(ctx:get(all), "under bytes")
  ctx:set("", "under nothing")
  check.equal(ctx:get(""), "under nothing")
  ctx:log(all)
  for i = 0, 255 do ctx:set(string.char(i), i) end
  for i = 0, 255 do check.equal(ctx:get(string.char(i)), i) end
end)
local run = flow.new("bytes"):data { given = all }:add(BytesOp):run()
assert(run.ok, run.error)
check.equal(run.data.value, all)
check.equal(run.data.given, all)
check.equal(run.data[all], "under bytes")
-- Lines of the log escape control characters only.
local line = check.on_one_line(all)
check.contains(run:summary(), "[BytesOp] " .. line .. "\n", "add for " .. line .. ": under bytes\n")

-- Messages have the bytes of what they quote.
local _, message = pcall(flow.op, "OddOp", { ["n\xFFds"] = {}, run = print })
check.contains(tostring(message), "unknown field 'n\xFFds'")
local needing = flow.op("k\xFFOp", { needs = { ["k\xFF"] = "any" }, run = print }):start()
needing:wait()
check.contains(tostring(needing.error), "[k\xFFOp] can't find <k\xFF> in data bucket")
