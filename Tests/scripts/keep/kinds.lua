-- Ops are kept wherever they are executed: nested, side by side, in branches, in workers, within other ops.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[

local function op(name, fields)
  fields = fields or {}
  local run = fields.run
  fields.run = function(ctx)
    effect(name .. (ctx.index and "#" .. ctx.index or ""))
    if run then return run(ctx) end
  end
  return flow.op(name, fields)
end
local function worker(name, fields)
  fields.thread = "worker"
  local run = fields.run
  fields.run = function(ctx)
    local file = io.open("effects", "a")
    file:write(name .. (ctx.index and "#" .. ctx.index or "") .. "\n")
    file:close()
    return run(ctx)
  end
  return flow.op(name, fields)
end

local A = op("A", { run = function(ctx) ctx:set("a", 1) end })
local B = op("B", { run = function(ctx) flow.sleep(0.001) ctx:set("b", 2) end })
local Left = op("Left", { run = function(ctx) flow.sleep(0.002) ctx:set("left", ctx:get "a") end })
local Right = op("Right", { run = function(ctx) ctx:set("right", ctx:get "b") end })
local Cleaned = op("Cleaned", { run = function(ctx) ctx:defer(function() effect "cleanup" end) ctx:set("c", 3) end })
local Retried = op("Retried", { retry = 3, run = function(ctx)
  if ctx.attempt < 3 then ctx:fail "again" end
  ctx:set("attempts", ctx.attempt)
end })
local Job = worker("Job", { needs = { a = "integer" }, run = function(ctx) ctx:set("job", ctx:get "a" + 10) end })
local Item = worker("Item", { needs = { x = "integer" }, gives = { y = "integer" },
  run = function(ctx) ctx:set("y", ctx:get "x" * 2) end })
local Each = flow.new("each"):add(op("One", { needs = { x = "integer" }, run = function(ctx) ctx:set("z", ctx:get "x") end }))
  :add(op("Two", { run = function(ctx) ctx:set("y", ctx:get "z" + 1) end }))
local Inner = op("Inner", { needs = { a = "integer" }, run = function(ctx) ctx:set("inner", ctx:get "a" + 1) end })
local Outer = flow.wrap(Inner, function(ctx, run) effect "outer" run() ctx:set("outer", ctx:get "inner" + 1) end)
local Child = op("Child", { run = function(ctx) ctx:set("child", ctx:get "given") end })
local Parent = op("Parent", { run = function(ctx)
  local run = Child:start { given = 9 }
  run:await()
  ctx:set("parent", run.data.child)
end })
local Changes = op("Changes", { needs = { list = "integer[]" }, run = function(ctx)
  table.insert(ctx:get "list", 4)
  ctx:set("a", nil)
end })
local Late = op("Late", { run = function(ctx)
  local parts = {}
  for _, key in ipairs { "b", "left", "right", "c", "attempts", "job", "inner", "outer", "parent", "chosen" } do
    parts[#parts + 1] = key .. "=" .. tostring(ctx:get(key))
  end
  print(table.concat(parts, " "), table.concat(ctx:get "ys", ","), table.concat(ctx:get "zs", ","), #ctx:get "list", ctx:has "a")
  if os.getenv "DIE" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
end })
flow.new("all"):data { list = { 1, 2, 3 } }
  :add(flow.new("nested"):add(A):add(B))
  :add_parallel(Left, Right)
  :add(Cleaned):add(Retried):add(Job)
  :add_grouped(Item, { input = "list", output = "ys" })
  :add_grouped(Each, { input = "list", output = "zs", as = "x", collect = "y" })
  :add(Outer):add(Parent)
  :case(function(data) return data.a == 1 end)
  :add(op("Chosen", { run = function(ctx) ctx:set("chosen", true) end })):combine()
  :add(Changes):add(Late)
  :add_finally(op("Final")):run()
]]

local first = script:run { "--keep", environment = { DIE = 1 } }
check.equal(first.status, 137, first.stderr)
local effects = script:effects()
assert(#effects > 20, first.stderr)
for _ = 1, 2 do
  check.equal(script:run({ "--resume", environment = { DIE = 1 } }).stdout, first.stdout)
  script:expect_effects "Late"
end
local log, result = script:resume()
check.equal(result.stdout, first.stdout)
script:expect_effects("Late", "Final")
for _, name in ipairs { "A", "Left", "Job", "Item #2", "One", "Parent", "Chosen", "Changes" } do
  if not log:find("[%[/]" .. name .. "] Kept from run") then error(name .. " isn't kept:\n" .. log) end
end
