-- A machine continues at the step that hadn't finished, with its state and its history, however often it was stopped.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local step, forward, back, on = flow.step, flow.forward, flow.back, flow.on
local given = { "a", "b", "back", "c", "d", "end" }
local AskOp = flow.op("AskOp", { needs = { asked = "integer" }, run = function(ctx)
  local n = ctx:get "asked" + 1
  if n > tonumber(os.getenv "ANSWERS") then ctx:fail "no answer yet" end
  effect("ask" .. n)
  ctx:set("answer", given[n])
  ctx:set("asked", n)
end })
local function note(state, ctx)
  effect("note " .. state.answer)
  ctx:set("noted", (ctx:has "noted" and ctx:get "noted" or "") .. state.answer)
  return { asked = state.asked, answer = state.answer, noted = true }
end
local order = flow.machine {
  name = "order", start = "ask",
  emit = function(result) return result.answer end,
  step("ask", { run = AskOp, on("end", forward "done"), on("back", back()), on("a", forward "first"),
    on("b", forward "first"), on("c", forward "first"), on("d", forward "first") }),
  step("first", { run = note, on("a", forward "ask"), on("b", forward "ask"), on("c", forward "ask"), on("d", back "ask"),
    on("back", forward "ask") }),
  step("done", { run = function(state, ctx) effect("done " .. table.concat(ctx.history, ",")) return {} end, final = true }),
}
flow.new("shop"):data { asked = 0 }:add(order)
  :add(flow.op("PrintOp", function(ctx) print(ctx:get "noted") end)):run()
]]

-- Without an interruption.
local whole = script:run { environment = { ANSWERS = 6 } }
local wanted = table.concat(script:effects(), "\n")
check.contains(wanted, "note back", "done ask,first,ask,first,")

local effects = {}
local log, result
for count = 0, 6 do
  log, result = script:resume { environment = { ANSWERS = count } }
  for _, line in ipairs(script:effects()) do effects[#effects + 1] = line end
  check.equal(result.status, count == 6 and 0 or 1, log)
end
check.equal(table.concat(effects, "\n"), wanted)
check.equal(result.stdout, whole.stdout)
check.contains(log, "[order] [first] Kept from run r")
local id = script:run({ "--runs" }).stdout:match "%f[%w]r%w+"
check.contains(script:run({ "--show=" .. id }).stdout, "[shop/order/done] finished", "\n  set its result (")
