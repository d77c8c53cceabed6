-- A secret prints as <redacted> in every line, and ctx:get and run.data return the plain value.
local flow, check = require "flow", require "check"
local LoginOp = flow.op("LoginOp", {
  needs = { password = "string" },
  run = function(ctx)
    local password = ctx:get("password", "string")
    check.equal(password, "hunter22")
    ctx:log("using " .. password, flow.secret("other"))
    ctx:set("url", "https://me:" .. password .. "@host")
    ctx:set("password", "changed!")
    ctx:log("changed!")
    ctx:set("pin", flow.secret(98765))
    ctx:set("copy", 98765)
    ctx:set("short", flow.secret("abc"))
    ctx:log("abc")
  end,
})
local run = flow.new("login")
  :data { email = "a@b.c", password = flow.secret("hunter22"), list = { flow.secret(1), "hunter22" } }
  :add(LoginOp):run()
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
email: a@b.c
list: {<redacted>, <redacted>}
password: <redacted>
T [LoginOp] WillStart
T [LoginOp] using <redacted> <redacted>
T [DataBucket] add for url: https://me:<redacted>@host
T [DataBucket] replace for password: <redacted> -> <redacted>
T [LoginOp] <redacted>
T [DataBucket] add for pin: <redacted>
T [DataBucket] add for copy: <redacted>
T [DataBucket] add for short: <redacted>
T [LoginOp] abc
T [LoginOp] DidFinish: successfully
T [DataBucket] end with:
email: a@b.c
list: {<redacted>, <redacted>}
password: <redacted>
url: https://me:<redacted>@host
pin: <redacted>
copy: <redacted>
short: <redacted>
Flow isSuccess: true
======    Ending    ======
]])
check.equal(run.data.password, "changed!")
check.equal(run.data.pin, 98765)
for _, event in ipairs(run:events()) do
  for _, field in pairs(event) do
    check.lacks(tostring(field), "hunter22", "changed!", "98765")
  end
end
-- A text that is a secret once is one in every run.
check.contains(flow.op("PlainOp", function(ctx) ctx:log("hunter22") end):run():summary(), "[PlainOp] <redacted>\n")
