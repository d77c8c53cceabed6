-- A login, then the profile: each op says what it needs, and waits for a server that isn't there.
local flow = require "flow"

local MockAsyncLoginOp = flow.op("MockAsyncLoginOp", function(ctx)
  local email = ctx:get("email", "string")
  local password = ctx:get("password", "string")
  flow.sleep(0.1)
  ctx:log("simulation of login callback")
  if email ~= "test@gmail.com" or password ~= "123456" then
    ctx:fail("No such account", { code = 404 })
  end
  ctx:set("accessToken", "sdaftadagasg")
end)

local MockAsyncLoadProfileOp = flow.op("MockAsyncLoadProfileOp", function(ctx)
  ctx:get("accessToken", "string")
  flow.sleep(0.1)
  ctx:log("simulation of success load profile callback")
  ctx:set("profileRefreshDate", "2017-07-13 08:17:20 +0000")
end)

local login = flow.new("login")
  :add(MockAsyncLoginOp)
  :add(MockAsyncLoadProfileOp)
  :did_finish(function(run) print(run:summary()) end)

login:run { email = "test@gmail.com", password = "123456" }

-- A flow is a blueprint: the same one again, with a key that is misspelt.
local run = login:run { email_address = "test@gmail.com", password = "123456" }
print(run.ok, run.error.kind, run.error.op)
