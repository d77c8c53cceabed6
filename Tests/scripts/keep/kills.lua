-- A kept run of 300 items that is killed at random moments, again and again, loses and repeats nothing that was finished.
-- clock: real: the script is another program
--
--   kills.lua [COUNT [SEED]]     that many kills, 5 by default, at moments drawn from a seed
local check, flow, recovery = require "check", require "flow", require "recovery"

local count = math.tointeger(arg[1] or 5)
local seed = math.tointeger(arg[2] or os.time())
math.randomseed(seed)

local TEXT = [[
local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, gives = { half = "number" }, run = function(ctx)
  note(ctx)
  flow.sleep(ctx.index % 5 * 0.002)
  ctx:set("half", ctx:get "item" / 2)
end })
local WorkerOp = flow.op("WorkerOp", {
  thread = "worker", needs = { item = "integer" }, gives = { square = "integer" },
  run = function(ctx)
    note(ctx)
    flow.sleep(ctx.index % 3 * 0.002)
    ctx:set("square", ctx:get "item" * ctx:get "item")
  end,
})
local items, others = {}, {}
for i = 1, 200 do items[i] = i end
for i = 1, 100 do others[i] = i end
local run = flow.new("work"):data { items = items, others = others }:add_parallel(
  flow.new("loop"):add_grouped(ItemOp, { input = "items", output = "halves", max_concurrent = 16 }),
  flow.new("workers"):add_grouped(WorkerOp, { input = "others", output = "squares", max_concurrent = 4 })
):run()
if run.error then error(run.error) end
flow.fs.write("data", table.concat(run.data.halves, ",") .. "\n" .. table.concat(run.data.squares, ","))
]]
local NAMES = {}
for i = 1, 200 do NAMES[#NAMES + 1] = "ItemOp #" .. i end
for i = 1, 100 do NAMES[#NAMES + 1] = "WorkerOp #" .. i end

-- Without a kill.
local script = recovery.script(TEXT)
local begun = flow.now()
check.equal(script:run({ "--workers=2", "--keep" }).stderr, "")
local whole = flow.now() - begun
local data = flow.fs.read(script.folder .. "/data")
script:effects()
begun = flow.now()
script:run { "--check" }
local start = flow.now() - begun

local kills, moments = 0, {}
local function prove()
  script = recovery.script(TEXT)
  moments = {}
  return recovery.prove(script, {
    expected = function() return 1 end, names = NAMES, data = data, limits = { ItemOp = 2 * 16 - 1, WorkerOp = 4 },
    process = function(_, words)
      local program = script:start { "--workers=2", table.unpack(words) }
      if kills >= count then return program:await() end
      local moment = math.random() * (start + whole / 8)
      moments[#moments + 1] = ("%.4f"):format(moment)
      flow.sleep(moment)
      flow.exec({ "kill", "-KILL", tostring(program.pid) }, { check = false }):await()
      local result = program:await()
      if result.status == 137 then kills = kills + 1 end
      return result
    end,
  })
end
local runs, repeated = 0, 0
while kills < count do
  local ok, processes, again = pcall(prove)
  if not ok then
    error(("killed after %s s, from seed %d, in %s: %s"):format(
      table.concat(moments, ", "), seed, script.folder, tostring(processes)))
  end
  runs, repeated = runs + 1, repeated + again
end
print(("%d kills in %d runs, %d of %d effects repeated, from seed %d"):format(kills, runs, repeated, 300 * runs, seed))
