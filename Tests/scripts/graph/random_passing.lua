-- Random pipelines give the results of a flow that executes their groups one after another, and take no longer.
-- A seed in FLOWLUA_SEED replaces the first one, a number in FLOWLUA_GRAPHS how many there are.
local flow, check = require "flow", require "check"
local first = math.tointeger(tonumber(os.getenv "FLOWLUA_SEED")) or 1
local number = math.tointeger(tonumber(os.getenv "FLOWLUA_GRAPHS")) or 300
local random = math.random

for seed = first, first + number - 1 do
  math.randomseed(seed)
  local stages, count, isLimited = {}, random(0, 12), false
  for k = 1, random(2, 5) do
    local pace, fails, input = random(0, 3), random(4) == 1, "k" .. k
    local options = {
      input = "l" .. k, output = "l" .. k + 1, as = input, collect = "k" .. k + 1, allow_empty = true,
      max_concurrent = random(1, 4), allow_failure = true, absent = random(3) == 1 and -1 or nil,
      rate = random(5) == 1 and { random(1, 3), per = 2 } or nil,
    }
    -- Further attempts come before new items, and a limit may be taken by the stage that others don't wait for.
    local retry = random(3) == 1 and 2 or nil
    if retry or options.rate then isLimited = true end
    if random(6) == 1 then
      local size = random(1, 3)
      options.limit, isLimited = flow.limit("limit " .. size, size), true
    end
    local Op = flow.op("Stage" .. k .. "Op", {
      needs = { [input] = "integer" }, gives = { ["k" .. k + 1] = "integer" }, retry = retry,
      thread = random(12) == 1 and "worker" or nil,
      run = function(ctx)
        local n = ctx:get(input)
        flow.sleep((n * 7 + pace) % 4 * pace / 2)
        if fails and n % 3 == 1 then ctx:fail "a third" end
        ctx:set("k" .. k + 1, n + 1)
      end,
    })
    stages[k] = { Op, options }
  end
  local iterates = random(3) == 1
  local function data()
    local list, n = {}, 0
    for i = 1, count do list[i] = i end
    return { l1 = iterates and function() n = n + 1 return list[n] end or list }
  end
  local graph, chain = flow.graph "pipeline", flow.new "chain"
  for _, stage in ipairs(stages) do
    graph:add_grouped(stage[1], stage[2])
    chain:add_grouped(stage[1], stage[2])
  end
  local passed, awaited = graph:run(data()), chain:run(data())
  local what = "seed " .. seed
  check.equal(passed.state, awaited.state, what)
  for k = 2, #stages + 1 do check.same(passed.data["l" .. k], awaited.data["l" .. k], what .. ", list " .. k) end
  check.equal(isLimited or passed.duration <= awaited.duration + 1e-9, true, what .. ", duration")
end
