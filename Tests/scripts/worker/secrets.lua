-- Secrets stay secret on the way to a worker and back.
local flow = require "flow"
local LoginOp = flow.op("LoginOp", {
  needs = { password = "string" }, thread = "worker",
  run = function(ctx)
    ctx:log("with", ctx:get("password"))
    ctx:set("token", flow.secret("tok" .. "en-of-worker"))
    ctx:set("length", #ctx:get("password"))
    ctx:log("got token-of-worker")
  end,
})
local ItemOp = flow.op("ItemOp", {
  needs = { n = "string", token = "string" }, gives = { out = "string" }, thread = "worker", primary_input = "n",
  run = function(ctx)
    ctx:log(ctx:get("n"), ctx:get("token"))
    ctx:set("out", flow.secret("out-" .. ctx:get("n")))
  end,
})
local FailOp = flow.op("FailOp", {
  needs = { token = "string" }, thread = "worker", run = function(ctx) error("bad " .. ctx:get("token")) end,
})
local run = flow.new("login"):data { password = flow.secret("123456"), ns = { "one1", "two2" } }
  :add(LoginOp):add_grouped(ItemOp, { input = "ns", output = "outs" }):add(FailOp):run()
local text = run:summary() .. tostring(run.error) .. run.error.traceback
for _, secret in ipairs { "123456", "token-of-worker", "out-one1" } do
  assert(not text:find(secret, 1, true), text)
end
assert(text:find("length: 6", 1, true), text)
assert(run.data.token == "token-of-worker" and run.data.outs[2] == "out-two2")
assert(run.error.message:find("bad <redacted>", 1, true), run.error.message)
