-- A secret object outside the bucket shows its content to no operation of a script.
local flow, check = require "flow", require "check"
local secret = flow.secret("hunter22")
check.equal(tostring(secret), "<redacted>")
check.equal(("%s"):format(secret), "<redacted>")
assert(rawequal(flow.secret(secret), secret))
check.equal(secret == "hunter22", false)
check.equal(secret == flow.secret("hunter22"), false)
check.equal(rawequal(secret, secret), true)
check.equal(({ [secret] = 1 })[secret], 1)
check.raises(function() return "x" .. secret end, "concatenate a secret value")
check.raises(function() return secret .. 1 end, "concatenate a secret value")
check.raises(function() return #secret end, "length of a secret value")
check.raises(function() return secret + 1 end, "arithmetic on a secret value")
check.raises(function() return secret < secret end, "compare two secret values")
check.raises(function() return secret() end, "call a secret value")
check.raises(function() return table.concat { secret } end, "invalid value")
check.raises(function() return ("x"):rep(secret) end, "number expected, got secret")
for _ in pairs {} do end
check.raises(function() for _ in pairs(secret) do end end, "secret")
check.usage(function() return secret.value end, "can't read field 'value' of a secret", "ctx:get")
check.usage(function() secret.value = 1 end, "can't set field 'value' of a secret")
check.usage(function() return secret[{}] end, "can't read a field of a secret")
check.usage(function() flow.secret() end, "secret", "#1", "value expected, got no value")
check.usage(function() flow.secret(nil) end, "secret", "#1", "value expected, got nil")
check.usage(function() flow.op(secret, print) end, "op", "#1", "string expected, got secret")
check.usage(function() flow.sleep(secret) end, "sleep", "number expected, got secret")

-- Any value but nil can be one, and comes back as the same.
local thread, table_, func = coroutine.create(print), { 1 }, function() end
local SetOp = flow.op("SetOp", function(ctx, bound)
  check.equal(tostring(bound), "<redacted>")
  ctx:log(bound, { bound } ~= nil)
  for name, value in pairs { thread = thread, table = table_, func = func, yes = true, no = false } do
    ctx:set(name, flow.secret(value))
    assert(rawequal(ctx:get(name), value), name)
  end
  ctx:set("bound", bound)
  check.equal(ctx:get("bound", "string"), "hunter22")
  check.equal(pcall(ctx.set, ctx, secret, 1), false)
  ctx:set("held", { [secret] = 1, of = secret })
  assert(rawequal(ctx:get("held").of, secret))
  ctx:log(ctx:get("table")[1])
end)
local run = SetOp(secret):run()
assert(run.ok, run.error)
for name in pairs { thread = 1, table = 1, func = 1, yes = 1, no = 1, bound = 1 } do
  check.contains(run:summary(), "add for " .. name .. ": <redacted>\n")
end
check.contains(run:summary(), "[SetOp] <redacted> true\n", "add for held: {of = <redacted>, <redacted> = 1}\n")
check.contains(run:summary(), "[SetOp] 1\n")
-- Types see the plain value under a key, and the object where it is one.
local typed = { needs = { p = "string", l = "secret[]", f = function(v) return v == "hunter22" end }, run = print }
typed.run = function() end
run = flow.op("TypedOp", typed):run { p = secret, l = { secret }, f = secret }
assert(run.ok, run.error)
