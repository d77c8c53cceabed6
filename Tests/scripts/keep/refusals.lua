-- A question about an op with effect = "once" pauses the run, and a store that fails ends it, whatever policies say.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

-- `pay` is in doubt after the first process. `ways` name what encloses it, with policies that ignore or repeat failures.
local prelude = [[
local DIE = os.getenv "DIE"
local function die() os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
local PayOp = flow.op("PayOp", { effect = "once", run = function() effect "pay" if DIE then die() end end })
local AfterOp = flow.op("AfterOp", function() effect "after" end)
]]
local ways = {
  group = [[
    local ItemOp = flow.op("ItemOp", { effect = "once", needs = { n = "integer" }, run = function(ctx)
      effect "pay"
      if DIE then die() end
    end })
    flow.new("work"):data { list = { 1, 2, 3 } }
      :add_grouped(ItemOp, { input = "list", allow_failure = true, failures = "bad", max_concurrent = 1 })
      :add(AfterOp):run()]],
  group_of_flows = [[
    flow.new("work"):data { list = { 1, 2, 3 } }
      :add_grouped(flow.new("item"):add(PayOp):with { retry = 3 }, { input = "list", as = "n", allow_failure = true, max_concurrent = 1 })
      :add(AfterOp):run()]],
  retry = [[
    flow.new("work"):add(flow.new("inner"):add(PayOp)
      :with { retry = { attempts = 3, when = function() return true end } }):add(AfterOp):run()]],
  wrap = [[
    flow.new("work"):add(flow.wrap(PayOp, function(_, run) pcall(run) end)):add(AfterOp):run()]],
  started = [[
    flow.new("work"):add(flow.op("StartOp", function() pcall(function() PayOp:start():await() end) end))
      :add(AfterOp):run()]],
  step = [[
    flow.new("work"):add(flow.machine { name = "m", start = "a", flow.step("a", { run = PayOp }), retry = 2 })
      :add(AfterOp):run()]],
  ignored = [[
    flow.new("work"):add(PayOp):add(AfterOp):start():wait()]],
}
for name, way in pairs(ways) do
  local script = kept.script(prelude .. way)
  script:run { "--keep", environment = { DIE = 1 } }
  check.equal(table.concat(script:effects(), " "), "pay", name)
  for _ = 1, 2 do
    local log, result = script:resume()
    check.contains(log, "had started in run r", "and may have had its effect")
    check.equal(result.status, 75, name)
    check.contains(log, " waits for <", " --resume ")
    script:expect_effects()
    check.contains(script:run({ "--runs" }).stdout, "unfinished")
  end
  script:resume { "--settle", "PayOp=again", "--settle", "ItemOp=again" }
  check.contains(table.concat(script:effects(), " "), "pay after")
  check.contains(script:run({ "--runs" }).stdout, " finished")
end

-- An item that is settled as failed is a failure as any other.
local script = kept.script(prelude .. ways.group)
script:run { "--keep", environment = { DIE = 1 } }
script:effects()
local _, result = script:resume { "--settle", "ItemOp=fail" }
check.equal(result.status, 0)
script:expect_effects("pay", "pay", "after")

-- A store that fails while items are executed, on the loop and in workers, and while a step of a machine is.
for _, way in ipairs {
  [[flow.new("work"):data { list = { 1, 2 } }
    :add_grouped(flow.op("ItemOp", { needs = { n = "integer" }, run = wait }), { input = "list", allow_failure = true })
    :add(flow.op("AfterOp", function() effect "after" end)):run()]],
  [[flow.new("work"):data { list = { 1, 2 } }
    :add_grouped(flow.op("ItemOp", { needs = { n = "integer" }, run = wait, thread = "worker" }),
      { input = "list", allow_failure = true })
    :add(flow.op("AfterOp", function() effect "after" end)):run()]],
  [[flow.new("work"):add(flow.machine { name = "m", start = "a", flow.step("a", { run = function() wait() return {} end }) })
    :add(flow.op("AfterOp", function() effect "after" end)):run()]],
} do
  script = kept.script([[
    local function wait()
      local flow = require "flow"
      flow.fs.write("begun", "")
      while not flow.fs.exists "go" do flow.sleep(0.01) end
    end
  ]] .. way)
  local program = script:start { "--keep" }
  kept.waits(function() return flow.fs.exists(script.folder .. "/begun") end)
  kept.waits(function() return flow.fs.exists(script.folder .. "/.flowlua") end)
  flow.fs.remove(script.folder .. "/.flowlua", { recursive = true })
  flow.fs.write(script.folder .. "/go", "")
  result = program:await()
  check.equal(result.status, 1)
  -- That it was removed, or can't be read, when it is removed within a write.
  check.contains(result.stderr, "flowlua: work failed: ", "the store '")
  script:expect_effects()
end
