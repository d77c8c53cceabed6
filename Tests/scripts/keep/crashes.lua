-- A crash at any point of a kept run loses nothing that was finished, and repeats nothing of it.
-- clock: real: the script is another program
--
--   crashes.lua [COUNT [SEED]]     that many runs, 20 by default, with up to three crashes each; or `all`: one at
--                                each point
--
-- Only debug builds have the points. scripts/test has made one beside the tests.
local check, flow, recovery = require "check", require "flow", require "recovery"

local count = arg[1] ~= "all" and math.tointeger(arg[1] or 20)
local seed = math.tointeger(arg[2] or os.time())
math.randomseed(seed)

local TEXT = [[
local ListOp = flow.op("ListOp", function(ctx)
  note(ctx)
  local list = {}
  for i = 1, 40 do list[i] = i end
  ctx:set("list", list)
  ctx:set("few", { 1, 2, 3, 4, 5, 6 })
  -- In a file of the store.
  ctx:set("large", ("large"):rep(20000))
end)
local PayOp = flow.op("PayOp", { effect = "once", run = function(ctx) note(ctx) end })
local SizeOp = flow.op("SizeOp", { needs = { large = "string" }, run = function(ctx)
  note(ctx)
  ctx:set("size", #ctx:get "large")
end })
local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, gives = { text = "string" }, run = function(ctx)
  note(ctx)
  flow.sleep(ctx.index % 3 * 0.001)
  ctx:set("text", ("x"):rep(ctx.index == 5 and 70000 or ctx.index))
end })
local WorkerOp = flow.op("WorkerOp", {
  thread = "worker", needs = { item = "integer" }, gives = { square = "integer" },
  run = function(ctx)
    note(ctx)
    ctx:set("square", ctx:get "item" ^ 2 // 1 | 0)
  end,
})
local SpinOp = flow.op("SpinOp", { needs = { n = "integer" }, run = function(ctx)
  note(ctx)
  local n = ctx:get "n" + 1
  ctx:set("n", n)
  ctx:set("answer", n < 3 and "more" or "end")
end })
local RestOp = flow.op("RestOp", function(ctx) note(ctx) ctx:set("answer", "rested") end)
local EndOp = flow.op("EndOp", function(ctx) note(ctx) ctx:set("answer", nil) end)
local machine = flow.machine {
  name = "machine", start = "spin", emit = function(result) return result.answer end,
  flow.step("spin", { run = SpinOp, flow.on("more", flow.forward "rest"), flow.on("end", flow.forward "ends") }),
  flow.step("rest", { run = RestOp, flow.on("rested", flow.forward "spin") }),
  flow.step("ends", { run = EndOp, final = true }),
}
local InnerOp = flow.op("InnerOp", function(ctx) note(ctx) ctx:set("inner", 1) end)
local OuterOp = flow.op("OuterOp", function(ctx) note(ctx) ctx:set("outer", ctx:get "inner" + 1) end)
local HoldOp = flow.op("HoldOp", {
  run = function(ctx) note(ctx) end,
  undo = function(ctx) note(ctx, "undo") end,
})
local FailOp = flow.op("FailOp", function(ctx) note(ctx) ctx:fail "as always" end)

local run = flow.new("work"):data { n = 0 }:add(ListOp):add(PayOp):add(SizeOp)
  :add_grouped(ItemOp, { input = "list", output = "texts", max_concurrent = 8 })
  :add_grouped(WorkerOp, { input = "few", output = "squares", max_concurrent = 2 })
  :add(machine):add(flow.new("inner"):add(InnerOp):add(OuterOp)):run()
if run.error then error(run.error) end
local second = flow.new("second"):add(HoldOp):add(FailOp):run()
local lines = { tostring(second.error) }
for key, value in pairs(run.data) do
  lines[#lines + 1] = key .. "=" .. (type(value) == "table" and table.concat(value, ",") or tostring(value))
end
table.sort(lines)
flow.fs.write("data", table.concat(lines, "\n"))
]]
local NAMES = { "ListOp", "PayOp", "SizeOp", "SpinOp", "RestOp", "EndOp", "InnerOp", "OuterOp" }
for i = 1, 40 do NAMES[#NAMES + 1] = "ItemOp #" .. i end
for i = 1, 6 do NAMES[#NAMES + 1] = "WorkerOp #" .. i end
local function expected(name)
  if name == "HoldOp" or name == "undo" or name == "FailOp" then return nil end
  return ({ SpinOp = 3, RestOp = 2 })[name] or 1
end

local program = recovery.program_with_points()
if not program then return check.skip "no debug build: scripts/test makes one" end

local undisturbed = recovery.script(TEXT, program)
check.equal(undisturbed:run { "--workers=2" }.stderr, "")
local data = flow.fs.read(undisturbed.folder .. "/data")

-- Crashes at these points, one in each process, and returns whether the first one came.
local function crash(points)
  local script, has_crashed = recovery.script(TEXT, program), false
  local ok, problem = pcall(function()
    local _, _, keys = recovery.prove(script, {
      expected = expected, once = "PayOp", names = NAMES, data = data, limits = { ItemOp = 2 * 8 - 1, WorkerOp = 2 },
      process = function(life, words)
        words.environment = { FLOWLUA_CRASH_AT = points[life] or 0 }
        local result = script:run { "--workers=2", environment = words.environment, table.unpack(words) }
        if life == 1 then has_crashed = result.status ~= 0 end
        return result
      end,
    })
    -- Each time that it was executed it was undone.
    for key in pairs(keys.HoldOp) do assert(keys.undo[key], "never undone: " .. key) end
  end)
  if not ok then
    error(("crashes at the points %s of seed %d, in %s: %s"):format(
      table.concat(points, ", "), seed, script.folder, tostring(problem)))
  end
  flow.fs.remove(script.folder, { recursive = true })
  return has_crashed
end

local CrashOp = flow.op("CrashOp", { needs = { item = "table" }, run = function(ctx) crash(ctx:get "item") end })
-- The last point, or nearly: what falls into one transaction differs from run to run.
local first, last, done = 0, 1, 1
while crash { last } do first, last, done = last, last * 2, done + 1 end
while last - first > 8 do
  local middle = (first + last) // 2
  done = done + 1
  if crash { middle } then first = middle else last = middle end
end
local cases = {}
if arg[1] == "all" then
  for point = 1, last + 8 do cases[point] = { point, point % 3 == 0 and math.random(last) or nil } end
else
  for i = 1, count - done do cases[i] = { math.random(last), math.random(last), math.random(last) } end
end
flow.new("crashes"):data { cases = cases }:add_grouped(CrashOp, { input = "cases", max_concurrent = 2 }):run()
print(("%d times at %d points, from seed %d"):format(done + #cases, last, seed))

-- A process that is killed after its script has ended hasn't finished the run, but for the very last moment: a service
-- manager starts it again, and nothing is done twice.
local point, repeated, has_crashed = 0, 0, nil
repeat
  point = point + 1
  local script = recovery.script([[flow.op("AOp", function(ctx) note(ctx) end):run()]], program)
  has_crashed = script:run({ "--resume", environment = { FLOWLUA_CRASH_AT = point } }).status ~= 0
  check.equal(script:run({ "--resume" }).status, 0)
  local _, runs = script:run({ "--runs" }).stdout:gsub("%f[^\n]r%w+ +finished", "")
  if has_crashed and runs > 1 then repeated = repeated + 1 end
  flow.fs.remove(script.folder, { recursive = true })
until not has_crashed
assert(repeated <= 1, ("after a crash at %d of %d points the run counts as finished"):format(repeated, point))
