-- Everything that can goes wrong here: a fetch that fails twice and is tried again, a check that
-- hangs until the flow's timeout, a start that is undone, and a server that is stopped whatever
-- happened.
local flow = require "flow"

local failures = 2
local FetchOp = flow.op("FetchOp", {
  doc = "Fetches the package from a server that is seldom there.",
  gives = { package = "string" },
  retry = { attempts = 4, delay = 0.02, factor = 2 },
  timeout = 1,
  run = function(ctx)
    flow.sleep(0.01)
    if failures > 0 then
      failures = failures - 1
      ctx:fail("connection refused", { code = 111 })
    end
    ctx:set("package", "site-" .. ctx.attempt .. ".tar")
  end,
})

local StartServerOp = flow.op("StartServerOp", {
  needs = { package = "string" },
  run = function(ctx)
    ctx:log("serving", ctx:get("package"))
    ctx:set("server", "running")
  end,
  -- Only when a later op fails, before the flow's final step.
  undo = function(ctx) ctx:log("serving the package before", ctx:get("package"), "again") end,
})

-- It hangs: nothing but a timeout ends it. Its cleanup runs all the same.
local CheckOp = flow.op("CheckOp", function(ctx)
  ctx:defer(function() ctx:log("connection closed") end)
  ctx:log("waiting for an answer")
  flow.sleep(60)
end)

local WarmUpOp = flow.op("WarmUpOp", function(ctx)
  for page = 1, 3 do
    flow.sleep(0.001)
    ctx:progress(page, 3)
  end
end)

local StopServerOp = flow.op("StopServerOp", function(ctx)
  if ctx:has("server") then ctx:set("server", "stopped") end
end)

local deploy = flow.new("deploy")
  :data { target = "staging" }
  :add(FetchOp)
  :add(StartServerOp)
  :case(function(data) return data.target == "production" end)
    :add_parallel(WarmUpOp, CheckOp)
  :otherwise()
    :add(WarmUpOp)
  :combine()
  :add_finally(StopServerOp)

print(deploy:run():summary())

-- The flow for production, where the check hangs: all of it may take 250 ms.
local production = deploy:copy():with { name = "deploy to production", timeout = 0.25 }
local run = production:run { target = "production" }
print(run:summary())
print(run.ok, run.error.kind, run.error.message)
