-- Items that an earlier process has finished start at once, on the loop or in workers, and have what the group collects.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local text = [[
local function note(text)
  local file = io.open("effects", "a")
  file:write(text, "\n")
  file:close()
end
local Op = flow.op("Op", {
  needs = { factor = "integer", n = "integer" }, gives = { out = "integer" }, primary_input = "n",
  thread = os.getenv "THREAD", run = function(ctx)
    local n = ctx:get "n"
    note("item " .. n)
    if n >= 5 and os.getenv "FAIL" then ctx:fail "no" end
    ctx:set("out", n * ctx:get "factor")
  end })
local rate = os.getenv "RATE" and { 2, per = 1000 } or nil
local run = flow.new("work"):data { factor = 2, list = { 1, 2, 3, 4, 5, 6 } }
  :add_grouped(Op, { input = "list", output = os.getenv "OUTPUT", rate = rate, max_concurrent = 1 })
  :with { timeout = 60 }:run()
print(table.concat(run.data.outs or {}, " "))
]]
local function environment(thread, more)
  local all = { THREAD = thread }
  for name, value in pairs(more or {}) do all[name] = value end
  return { environment = all }
end

for _, threads in ipairs { { "main", "worker" }, { "worker", "main" }, { "main", "main" }, { "worker", "worker" } } do
  local script = kept.script(text)
  local options = environment(threads[1], { FAIL = 1, OUTPUT = "outs" })
  options[1] = "--keep"
  check.equal(script:run(options).status, 1)
  script:expect_effects("item 1", "item 2", "item 3", "item 4", "item 5")
  -- A kept item is no start: two others may start at once.
  local log, result = script:resume(environment(threads[2], { RATE = 1, OUTPUT = "outs" }))
  check.contains(log, "[Op #1] Kept from run", "[Op #4] Kept from run", "[Op #5] Again: it had failed: no")
  check.equal(result.stdout, "2 4 6 8 10 12\n")
  script:expect_effects("item 5", "item 6")
end

-- Values that weren't collected aren't known of items in workers. On the loop they are.
for _, threads in ipairs { { "worker", "worker" }, { "worker", "main" }, { "main", "worker" } } do
  local script = kept.script(text)
  local options = environment(threads[1], { FAIL = 1 })
  options[1] = "--keep"
  script:run(options)
  script:effects()
  local log, result = script:resume(environment(threads[2], { OUTPUT = "outs" }))
  check.equal(result.stdout, "2 4 6 8 10 12\n", result.stderr)
  if threads[1] == "worker" then
    check.contains(log, "[Op #1] Again: the output that its group collects wasn't kept")
    script:expect_effects("item 1", "item 2", "item 3", "item 4", "item 5", "item 6")
  else
    script:expect_effects("item 5", "item 6")
  end
end

-- Flows and machines as items start at once, too, if all within them is kept.
local script = kept.script [[
local Op = flow.op("Op", function(ctx)
  effect("op " .. ctx:get "n")
  if ctx:get "n" == 3 and os.getenv "FAIL" then ctx:fail "no" end
end)
local machine = flow.machine { name = "m", start = "a", needs = { n = "integer" },
  flow.step("a", { run = Op, flow.next(flow.forward "b") }), flow.step("b", { run = function() return {} end }) }
local rate = os.getenv "RATE" and { 1, per = 1000 } or nil
flow.new("work"):data { list = { 1, 2, 3 } }
  :add_grouped(flow.new("item"):add(Op), { input = "list", as = "n", rate = rate, allow_failure = true })
  :add_grouped(machine, { input = "list", as = "n", rate = rate, allow_failure = true })
  :add(flow.op("Last", function(ctx) if os.getenv "FAIL" then ctx:fail "no" end end))
  :with { timeout = 60 }:run()
]]
script:run { "--keep", environment = { FAIL = 1 } }
script:effects()
local _, result = script:resume { environment = { RATE = 1 } }
check.equal(result.status, 0, result.stderr)
script:expect_effects("op 3", "op 3")
