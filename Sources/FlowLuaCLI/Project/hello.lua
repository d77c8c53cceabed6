-- A first flow: three guests are invited.
local flow = require "flow"

-- An op is a function with a name. It says which data it needs and gives; flowlua checks both.
local ListOp = flow.op("ListOp", {
  gives = { guests = "string[]" },
  run = function(ctx) ctx:set("guests", { "Ada", "Grace", "Lin" }) end,
})

-- An attempt that fails is repeated. Here one fails on purpose, and the next begins 0.5 s later.
local InviteOp = flow.op("InviteOp", {
  needs = { guest = "string" },
  gives = { letter = "string" },
  retry = { attempts = 3, delay = 0.5 },
  run = function(ctx)
    local guest = ctx:get "guest"
    if guest == "Grace" and ctx.attempt == 1 then ctx:fail "no paper" end
    ctx:set("letter", "Dear " .. guest .. ", please come!")
  end,
})

local CountOp = flow.op("CountOp", function(ctx)
  ctx:log(#ctx:get("letters", "string[]") .. " letters are written")
end)

-- A flow executes its steps in their order. The second one is a group: InviteOp for each guest,
-- two at a time. In the summary its lines begin with [FlowArrayGroupDispatcher].
local party = flow.new("party")
  :add(ListOp)
  :add_grouped(InviteOp, {
    input = "guests", output = "letters", max_concurrent = 2, label = "guest",
  })
  :add(CountOp)

-- The test gets the flow by `require "hello"`, and runs it itself.
if ... == "hello" then return party end

local run = party:run()
if not run.ok then error(run.error) end
print(table.concat(run.data.letters, "\n"))
