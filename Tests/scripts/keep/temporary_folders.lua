-- An op that has set the path of a temporary folder executes again when the folder is gone; one that only worked there is kept.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local fs = flow.fs
local BuildOp = flow.op("BuildOp", { gives = { dir = "string" }, run = function(ctx)
  effect "build"
  local dir = fs.temp_dir()
  fs.write(dir .. "/a.txt", "data")
  ctx:set("dir", dir)
end })
local WorkOp = flow.op("WorkOp", function(ctx)
  effect "work"
  fs.write(fs.temp_dir() .. "/b.txt", "scratch")
  ctx:set("size", 7)
end)
local OuterOp = flow.op("OuterOp", function(ctx)
  effect "outer"
  ctx:set("files", { BuildOp:run({}).data.dir .. "/a.txt" })
end)
-- Items in workers belong to the run, too.
local ItemOp = flow.op("ItemOp", { thread = "worker", needs = { n = "integer" }, gives = { made = "string" },
  run = function(ctx)
    local made = require "flow".fs.temp_dir()
    require "flow".fs.write(made .. "/c.txt", "data")
    ctx:set("made", made)
  end })
local EndOp = flow.op("EndOp", function(ctx)
  for _, made in ipairs(ctx:get "folders") do assert(fs.exists(made .. "/c.txt")) end
  if os.getenv "FAIL" then ctx:fail "no network" end
  print(fs.read(ctx:get "dir" .. "/a.txt"), ctx:get "size", fs.exists(ctx:get "dir"))
end)
flow.new("t"):data { ns = { 1, 2 } }:add(BuildOp):add(WorkOp):add(OuterOp)
  :add_grouped(ItemOp, { input = "ns", as = "n", output = "folders" }):add(EndOp):run()
]]
check.equal(script:run({ "--keep", environment = { FAIL = 1 } }).status, 1)
script:expect_effects("build", "work", "outer", "build")
local text, result = script:resume()
check.equal(result.status, 0, result.stderr)
check.equal(result.stdout, "data\t7\ttrue\n")
script:expect_effects("build", "outer", "build")
check.contains(text, "[BuildOp] Again: its temporary folder is gone", "[WorkOp] Kept from run r",
  "[OuterOp] Again: its temporary folder is gone", "[ItemOp #1] Again: its temporary folder is gone",
  "[ItemOp #2] Again: its temporary folder is gone")
