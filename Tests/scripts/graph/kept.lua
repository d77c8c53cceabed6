-- A kept graph continues where it stopped, and executes again only what has other inputs than before.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local function op(name, needs, gives, run)
  return flow.op(name, { needs = needs, gives = gives, run = function(ctx)
    effect(name)
    if os.getenv "FAIL" == name then error("broken", 0) end
    if run then run(ctx) end
  end })
end
local run = flow.graph("release", { max_concurrent = 1 }):data { version = "1", parts = { 1, 2 } }
  :add(op("PublishOp", { binary = "string" }))
  :add(op("LintOp", { source = "string" }))
  :add(op("BuildOp", { source = "string" }, { binary = "string" },
    function(ctx) ctx:set("binary", ctx:get "source" .. "b") end))
  :add_grouped(op("TestOp", { part = "integer", source = "string" }, { report = "integer" },
    function(ctx) ctx:set("report", ctx:get "part" * 2) end),
    { input = "parts", output = "reports", as = "part", max_concurrent = 1 })
  :add(op("CheckoutOp", { version = "string" }, { source = "string" }, function(ctx) ctx:set("source", "s") end))
  :run()
run:await()
effect(run.data.binary .. #run.data.reports)
]]

local function runs(...) return script:expect(...) end

-- The op that fails stops the group, and a run that continues executes what hadn't finished.
runs(1, { "--keep", environment = { FAIL = "PublishOp" } }, "CheckoutOp", "LintOp", "BuildOp", "PublishOp")
local lines = runs(0, { "--resume" }, "PublishOp", "TestOp", "TestOp", "sb2")
-- Its code has changed, but what it gives is the same: nothing that follows executes.
script:edit('ctx:get "source" .. "b"', '("%sb"):format(ctx:get "source")')
lines = runs(0, { "--resume=" .. script:run({ "--runs" }).stdout:match "\n(r%w+)" }, "BuildOp", "sb2")
-- Now it gives another value.
script:edit('"%sb"', '"%sc"')
lines = runs(0, { "--resume=" .. script:run({ "--runs" }).stdout:match "\n(r%w+)" }, "BuildOp", "PublishOp", "sc2")
