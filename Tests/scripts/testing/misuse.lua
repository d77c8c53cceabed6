-- Wrong use of testing.run is an error before anything has run.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local ran = false
local UploadOp = flow.op("UploadOp", function() ran = true end)
local signup = flow.new("signup"):add(UploadOp)
check.usage(function() testing.run() end, "run", "#1", "op expected", "got no value")
check.usage(function() testing.run(print) end, "run", "#1", "flow.op(name, function)")
check.usage(function() testing.run(flow.ops.SleepOp) end, "run", "#1", "SleepOp(…)")
check.usage(function() testing.run(UploadOp, 5) end, "run", "#2", "table expected, got number")
check.usage(function() testing.run(UploadOp, { dat = {} }) end, "run", "did you mean 'data'?")
check.usage(function() testing.run(UploadOp, { data = 5 }) end, "run", "field 'data'", "number")
check.usage(function() testing.run(UploadOp, { data = { 1 } }) end, "run", "field 'data'", "strings")
check.usage(function() testing.run(UploadOp, { replace = 1 }) end, "run", "field 'replace'")
check.usage(function() testing.run(UploadOp, { replace = { UploadOp = 1 } }) end, "run",
  "field 'replace'", "'UploadOp': op, function or table of data expected, got number")
check.usage(function() testing.run(UploadOp, { replace = { UploadOp = flow.ops.PrintOp } }) end,
  "run", "PrintOp(…)")
check.usage(function() testing.run(UploadOp, { replace = { UploadOp = { 1 } } }) end, "run", "strings")
check.usage(function() testing.run(UploadOp, { replace = { print } }) end, "run", "names of ops")
check.usage(function() testing.run(signup, { replace = { UplaodOp = print } }) end, "run",
  "no op called 'UplaodOp' is in 'signup' (did you mean 'UploadOp'?)")
assert(not ran, "nothing has run")
-- One that is like no other could be started by an op; that it wasn't is known at the end.
check.usage(function() testing.run(signup, { replace = { MailOp = print } }) end, "run",
  "no op called 'MailOp' is in 'signup', nor was one started")
assert(ran)
local MailOp = flow.op("MailOp", function() error("real") end)
local SendOp = flow.op("SendOp", function() MailOp:run() end)
assert(testing.run(SendOp, { replace = { MailOp = function() end } }).ok)
-- An op of that very name is meant, however alike another one is.
local FailOp = flow.op("FailOp", function() MailOp:run() end)
local fake = flow.op("MailOp", function() end)
assert(testing.run(FailOp, { replace = { MailOp = fake } }).ok)
