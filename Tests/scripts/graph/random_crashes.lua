-- Random kept graphs that crash at any point, again and again, end as they would have, and execute nothing again that had finished.
-- clock: real: the script is another program
--
--   random_crashes.lua [COUNT [SEED]]     that many graphs, 2 by default, with six crashes each; or `all`: one at each
--                                         point of 10 graphs
--
-- Only debug builds have the points. scripts/test has made one beside the tests.
local check, flow, graphs, recovery = require "check", require "flow", require "graphs", require "recovery"

local all = arg[1] == "all"
local count = all and 10 or math.tointeger(arg[1] or 2)
local first = math.tointeger(arg[2] or os.time() % 100000)

local program = recovery.program_with_points()
if not program then return check.skip "no debug build: scripts/test makes one" end

local TEXT = [[
local graphs = require "graphs"
local plan = graphs.plan(%d, { steady = true, size = 16 })
local flaky = {}
for _, node in ipairs(plan.nodes) do flaky[node.name] = node.flaky end
-- An attempt that fails isn't an effect.
local function note_last(ctx) if ctx.attempt > (flaky[ctx.name] or 0) then note(ctx) end end
local run = graphs.build(plan, note_last):run(plan.data)
if run.error then error(run.error) end
local lines = {}
for _, node in ipairs(plan.nodes) do
  local value = run.data[node.key]
  lines[#lines + 1] = node.key .. "=" .. (type(value) == "table" and table.concat(value, ",") or tostring(value))
end
flow.fs.write("data", table.concat(lines, "\n"))
]]

-- How often each function of a graph has to run, by its name; and how many items may be in doubt.
local function expectation(plan)
  local times, limits, names, lines = {}, {}, {}, {}
  for number, node in ipairs(plan.nodes) do
    assert(node.state ~= "failed", node.name)
    local function expect(name)
      times[name] = 1
      names[#names + 1] = name
    end
    if not node.executes then
      times[node.name] = 0
    elseif node.is_group then
      for i in ipairs(node.items) do expect(("%s #%d"):format(node.name, i)) end
      limits[node.name] = 2 * node.width
    elseif node.kind == "flow" or node.kind == "graph" then
      for letter in ("ABCD"):gmatch "." do expect(("I%d%sOp"):format(number, letter)) end
    else
      expect(node.name)
    end
    local value = node.value
    lines[number] = node.key .. "=" .. (type(value) == "table" and table.concat(value, ",") or tostring(value))
  end
  return { expected = function(name) return times[name] or 0 end, limits = limits, names = names,
    data = table.concat(lines, "\n") }
end

-- Crashes at these points, one in each process; returns whether the first one came.
local function crash(seed, points)
  local options, script = expectation(graphs.plan(seed, { steady = true, size = 16 })), recovery.script(TEXT:format(seed), program)
  local has_crashed = false
  function options.process(life, words)
    local environment = { FLOWLUA_CRASH_AT = points[life] or 0, LUA_PATH = os.getenv "PWD" .. "/Tests/scripts/lib/?.lua;;" }
    local result = script:run { "--workers=2", environment = environment, table.unpack(words) }
    if life == 1 then has_crashed = result.status ~= 0 end
    return result
  end
  local ok, problem = pcall(recovery.prove, script, options)
  if not ok then
    error(("crashes at the points %s of the graph of seed %d, in %s: %s"):format(
      table.concat(points, ", "), seed, script.folder, tostring(problem)), 0)
  end
  flow.fs.remove(script.folder, { recursive = true })
  return has_crashed
end

local done = 0
local CrashOp = flow.op("CrashOp", { needs = { case = "table" }, run = function(ctx)
  local case = ctx:get "case"
  crash(case.seed, case.points)
end })
for seed = first, first + count - 1 do
  crash(seed, {})
  local last = 1
  while crash(seed, { last }) do last = last * 2 end
  local cases = {}
  if all then
    for point = 1, last do cases[point] = { seed = seed, points = { point, point % 3 == 0 and math.random(last) or nil } } end
  else
    for i = 1, 2 do cases[i] = { seed = seed, points = { math.random(last), math.random(last), math.random(last) } } end
  end
  flow.new("crashes"):add_grouped(CrashOp, { input = "cases", max_concurrent = 2 }):run { cases = cases }
  done = done + #cases
end
print(("%d crashes of %d graphs, from seed %d"):format(done, count, first))
