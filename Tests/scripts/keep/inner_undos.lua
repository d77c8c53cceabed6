-- An op around others is kept as a whole, and what it had executed is undone when a later op of a resumed run fails.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local function make(name)
  return flow.op(name, {
    run = function(ctx)
      effect("make " .. name .. (ctx:has "n" and ctx:get "n" or ""))
      ctx:set(name, { by = name })
    end,
    undo = function(ctx)
      effect("undo " .. name .. (ctx:has "n" and ctx:get "n" or "") .. " of " .. ctx:get(name).by .. (ctx.index or 0))
    end,
  })
end
local function around(op, name) return flow.wrap(op, function(_, run) effect("around " .. name) run() end) end
local machine = flow.machine { name = "m", start = "a",
  flow.step("a", { run = make "StepOp", flow.next(flow.forward "b") }),
  flow.step("b", { run = function() return {} end }),
}
local inner = flow.new("inner"):add(make "AOp"):add(make "AOp")
  :add_grouped(make "ItemOp", { input = "list", as = "n", max_concurrent = 1 })
  :add(around(make "BOp", "b")):add(machine):add_finally(make "FinalOp")
local last = flow.op("LastOp", function(ctx)
  effect "last"
  if os.getenv "END" == "fail" then ctx:fail "no" end
  if os.getenv "END" == "kill" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
end)
flow.new("work"):data { list = { 7, 8 } }:add(around(inner, "inner")):add(last):run()
]]
local MADE = "around inner, make AOp, make AOp, make ItemOp7, make ItemOp8, around b, make BOp, make StepOp, make FinalOp, last"
local UNDONE = "undo StepOp of StepOp0, undo BOp of BOp0, undo ItemOp8 of ItemOp2, undo ItemOp7 of ItemOp1, "
  .. "undo AOp of AOp0, undo AOp of AOp0"
local function effects() return table.concat(script:effects(), ", ") end

-- Undone by the same process.
check.equal(script:run({ "--keep", environment = { END = "fail" } }).status, 1)
check.equal(effects(), MADE .. ", " .. UNDONE)
check.equal(script:run({ "--resume", environment = { END = "kill" } }).status ~= 0, true)
check.equal(effects(), MADE)
-- Later ones.
local log, result = script:resume { environment = { END = "kill" } }
check.contains(log, "[inner] Kept from run")
check.equal(effects(), "last")
log, result = script:resume { environment = { END = "fail" } }
check.equal(result.status, 1)
check.equal(effects(), "last, " .. UNDONE)
check.contains(log, "[inner] Kept from run", "[StepOp] Undo: successfully", "[ItemOp #2] Undo: successfully")
log = script:resume()
check.contains(log, "[inner] Again: it was undone", "[AOp] Again: it was undone", "[BOp] Again: it was undone")
check.equal(effects(), MADE)

-- The own undo of an op around others comes first; an undo that the script doesn't have any more isn't executed.
script = kept.script [[
local function undo(ctx) effect("undo " .. ctx.name) end
local A = flow.op("A", { run = function() effect "A" end, undo = undo })
local B = flow.op("B", { run = function() effect "B" end, undo = undo --[=[B]=] })
local both = flow.wrap(flow.new("both"):add(A):add(B), function(_, run) run() end):with { undo = undo }
flow.new("work"):add(both):add(flow.op("Last", function(ctx) ctx:fail "no" end)):run()
]]
local FAILS = "flow.new(\"work\"):add(both):add(flow.op(\"Last\", function(ctx) ctx:fail \"no\" end)):run()"
script:run { "--keep" }
check.equal(effects(), "A, B, undo both, undo B, undo A")
script:edit(FAILS, FAILS:gsub("ctx:fail \"no\"", "os.execute('kill -9 ' .. io.open('/proc/self/stat'):read 'n')"))
script:resume()
check.equal(effects(), "A, B")
script:write((script.text:gsub("undo = undo %-%-%[=%[B%]=%]", "")
  :gsub("os.execute%b()", "ctx:fail \"no\"")))
script:resume()
check.equal(effects(), "undo both, undo A")
