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

-- Beside other steps it has its data by chance: these end at once when they are kept.
for _, case in ipairs {
  { "flow.op('SideOp', function(ctx) flow.sleep(0.001) ctx:set('side', 1) end)", before = "nil" },
  { "flow.op('SideOp', function(ctx) flow.sleep(0.001) ctx:set('given', 1) end)", before = "nil" },
  { "flow.new('inner'):add(flow.op('SideOp', function(ctx) ctx:set('side', 1) flow.sleep(0.001) end))", before = "1" },
  { "flow.new('list'):data { items = { 1, 2 } }:add_grouped(flow.op('ItemOp', { needs = { item = 'integer' },"
    .. " run = function(ctx) ctx:set('out', ctx:get 'item') end }), { input = 'items', as = 'item', output = 'side',"
    .. " collect = 'out' })", before = "nil" },
  { "flow.machine { name = 'other', start = 'only', flow.step('only', { final = true, run = function()"
    .. " flow.sleep(0.001) return { side = 1, given = 0 } end }) }", before = "nil" },
} do
  local parallel = kept.script("local SideOp = " .. case[1] .. [[

local pay = flow.machine {
  name = "pay", start = "first",
  flow.step("first", { flow.next(flow.forward "last"), run = function(state)
    effect("first " .. tostring(state.side))
    return os.getenv "SAME" and state or nil
  end }),
  flow.step("last", { final = true, run = function(state) effect("last " .. state.given) return state end }),
}
local function step_of_machine(op)
  return flow.machine { name = "around", start = "inner", flow.step("inner", { run = op, final = true }) }
end
local ways = {
  deep = flow.new("deep"):add(flow.op("NoOp", function() end)):add(pay),
  step = step_of_machine(pay), flow = step_of_machine(flow.new("deep"):add(pay)),
}
flow.new("both"):data { given = 0 }:add_parallel(SideOp, ways[os.getenv "WAY"] or pay)
  :add(flow.op("LastOp", function(ctx)
    if not os.getenv "END" then ctx:fail "not yet" end
  end)):run()
]])
  log, result = parallel:resume()
  check.equal(result.status, 1, log)
  parallel:expect_effects("first " .. case.before, "last 0")
  log, result = parallel:resume { environment = { END = 1 } }
  check.equal(result.status, 0, log)
  parallel:expect_effects()
  check.contains(log, "[pay] [first] Kept from run r", "[pay] [last] Kept from run r")

  for _, environment in ipairs { { WAY = "deep" }, { WAY = "step" }, { WAY = "flow" }, { SAME = 1 } } do
    log, result = parallel:resume { environment = environment }
    check.equal(result.status, 1, log)
    parallel:effects()
    environment.END = 1
    log, result = parallel:resume { environment = environment }
    check.equal(result.status, 0, log)
    parallel:expect_effects()
  end
end
