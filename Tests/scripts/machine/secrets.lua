-- Secrets stay secret on their way through a machine and its steps.
local flow, check = require "flow", require "check"
local UseOp = flow.op("UseOp", function(ctx)
  ctx:log("uses", ctx:get "password")
  ctx:set("token", flow.secret "tokentoken")
end)
local login = flow.machine {
  name = "login", start = "use",
  flow.step("use", { run = UseOp, flow.next(flow.forward "show") }),
  flow.step("show", { run = function(state, ctx)
    check.equal(state.token, "tokentoken")
    check.equal(state.password, "123456")
    ctx:log("has", state.token)
  end }),
}
local run = flow.new("f"):data { password = flow.secret "123456" }:add(login):run()
check.equal(run.ok, true)
check.equal(run.data.token, "tokentoken")
check.lacks(run:summary(), "tokentoken", "123456")
check.contains(run:summary(), "[login] has <redacted>", "add for token: <redacted>")
