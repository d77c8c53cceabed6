-- Cases in which the original misbehaves are errors or work.
local flow, check = require "flow", require "check"
local on, forward, back, step = flow.on, flow.forward, flow.back, flow.step
local function transitions(run)
  local list = {}
  for _, event in ipairs(run:events()) do
    if event.kind == "transition" then list[#list + 1] = event.message end
  end
  return list
end

-- retry at the first step: performed again, not a dead end.
local count = 0
local run = flow.machine {
  name = "m", start = "a",
  reduce = function(_, result) return result < 3 and flow.retry() or flow.finish(result) end,
  step("a", { run = function() count = count + 1 return count end }),
}:run()
check.equal(run.result, 3)
check.same(transitions(run), { "retry a", "retry a" })
check.contains(run:summary(), "[m] retry a\n")

-- retry at a later step: the previous result again, with the state of that moment.
local log = {}
count = 0
run = flow.machine {
  name = "m", start = "a",
  reduce = function(state, result)
    log[#log + 1] = state .. "+" .. result
    if result == "failed" then return flow.retry() end
    return flow.continue(state .. result)
  end,
  step("a", { run = function() return "a" end, flow.next(forward "b") }),
  step("b", { run = function() count = count + 1 return count < 2 and "failed" or "b" end }),
}:run ""
check.equal(run.result, "ab")
check.same(log, { "+a", "a+failed", "+a", "a+b" })
check.same(transitions(run), { "a -> b", "retry a", "a -> b" })

-- An event that nobody handles is an error that names step and event; it doesn't hang.
run = flow.machine {
  name = "m", start = "a", emit = function() return "surprise" end,
  step("a", { run = function() end, on("other", flow.stay()), flow.next(forward "a") }),
}:run()
check.equal(run.error.kind, "usage")
check.contains(run.error.message, "'surprise'", "'a'")

-- The step's own way beats the one of any step, unless `any` says otherwise.
local function shadowed(any)
  return transitions(flow.machine {
    name = "m", start = "a", any = any, emit = function(_, state) return state == 1 and "e" or nil end,
    flow.any_step { on("e", forward "general") },
    step("a", { run = function() return 1 end, on("e", forward "own") }),
    step("own", { run = function() return 2 end }), step("general", { run = function() return 2 end }),
  }:run())
end
check.same(shadowed(nil), { "a -> own on e" })
check.same(shadowed("last"), { "a -> own on e" })
check.same(shadowed("first"), { "a -> general on e" })

-- Endless loops end.
local function nothing() end
run = flow.machine { name = "m", start = "a", step("a", { run = nothing, flow.next(flow.stay()) }) }:run()
check.equal(run.error.message, "exceeded max_transitions (10000)")
check.equal(#transitions(run), 10000)
run = flow.machine { name = "m", start = "a", max_transitions = 3, reduce = function() return flow.retry() end,
  step("a", { run = nothing }) }:run()
check.equal(run.error.message, "exceeded max_transitions (3)")
run = flow.machine { name = "m", start = "a", max_transitions = 1, flow.step("a", { run = nothing, flow.next(forward "b") }),
  step("b", { run = nothing }) }:run()
check.equal(run.ok, true, "as many transitions as allowed")

-- A transition back continues: the loop doesn't end there.
local visits = {}
run = flow.machine {
  name = "m", start = "a", emit = function(result) return result end,
  step("a", { run = function() visits[#visits + 1] = "a" end, flow.next(forward "b") }),
  step("b", { run = function() visits[#visits + 1] = "b" end, flow.next(forward "c") }),
  step("c", {
    run = function() visits[#visits + 1] = "c" return ({ [3] = "back", [5] = "start" })[#visits] or "end" end,
    on("back", back()), on("start", back "a"), on("end", forward "d"),
  }),
  step("d", { run = function() visits[#visits + 1] = "d" return nil end }),
}:run()
check.equal(table.concat(visits), "abcbcabcd")
check.same(transitions(run), { "a -> b", "b -> c", "c -> b on back", "b -> c", "c -> a on start",
  "a -> b", "b -> c", "c -> d on end" })

-- A machine is a blueprint: several runs at the same time don't touch each other.
local m = flow.machine { name = "m", start = "a",
  step("a", { run = function(state) flow.sleep(0.001 * state) return state + 1 end, flow.next(forward "b") }),
  step("b", { run = function(state) flow.sleep(0.001) return state * 10 end }) }
local runs = {}
for i = 1, 5 do runs[i] = m:start(i) end
for i = 1, 5 do check.equal(runs[i]:await(), (i + 1) * 10) end
