-- The strings and numbers in a secret table are secrets, at any depth; its keys, and texts of less than 4 bytes, aren't.
local flow, check, host = require "flow", require "check", require "host"
local account = { user = "ada5678", pw = "p5678901", pin = 98765, ratio = 1234.5, short = "abc", yes = true,
  codes = { "code-one", { deep = { "code-two", flow.secret "code-three" } } }, print = print, [7] = "number-seven" }
account.itself = account
account.codes.again = account.codes
local HIDDEN = { "ada5678", "p5678901", "98765", "1234.5", "code-one", "code-two", "code-three", "number-seven" }

local UseOp = flow.op("UseOp", function(ctx)
  local plain = ctx:get "account"
  check.equal(plain.codes[2].deep[1], "code-two")
  ctx:log("pw " .. plain.pw, plain.pin, plain.codes[1], "user", plain.short)
  for i, text in ipairs(HIDDEN) do ctx:set("x" .. i, "<" .. text .. ">") end
  ctx:set("pin", 98765)
  plain.later = "later-5678"
  ctx:set("account", flow.secret(plain))
  ctx:log "later-5678"
  ctx:fail("no " .. plain.pw)
end)
local run = UseOp:start { account = flow.secret(account) }
run:wait()
local summary = run:summary { full = true }
check.lacks(summary, "later-5678", table.unpack(HIDDEN))
check.contains(summary, "[UseOp] pw <redacted> <redacted> <redacted> user abc\n", "add for x1: <<redacted>>\n", "add for pin: <redacted>\n")
check.equal(run.error.message, "no <redacted>")
for _, event in ipairs(run:events()) do
  for _, field in pairs(event) do check.lacks(tostring(field), table.unpack(HIDDEN)) end
end

-- One that code in a worker has, or makes.
run = flow.op("WorkOp", { thread = "worker", needs = { account = "table" }, run = function(ctx)
  ctx:log(ctx:get("account").pw .. " in a worker")
  ctx:set("made", flow.secret { "made-in-worker" })
  ctx:log "made-in-worker"
end }):run { account = flow.secret { pw = "worker-5678" } }
check.contains(run:summary(), "[WorkOp] <redacted> in a worker\n", "[WorkOp] <redacted>\n")

-- A deep one, and one of many texts; they end with their run.
local deep = {}
for _ = 1, 20000 do deep = { deep } end
deep[2] = "deep-5678"
local many = {}
for i = 1, 5000 do many[i] = "many-" .. i end
run = flow.op("ManyOp", function(ctx) ctx:log("deep-5678 many-1 many-5000") end):run { deep = flow.secret(deep), many = flow.secret(many) }
check.contains(run:summary(), "[ManyOp] <redacted> <redacted> <redacted>\n")

-- They count into the memory limit as other secrets do, also those that a table has many times.
local result = host.script([[
  local flow = require "flow"
  local made = {}
  for i = 1, 10 do made[i] = ("x"):rep(1 << 20) .. i end
  print(pcall(flow.secret, made))
  local text, shared = ("y"):rep(1 << 20), {}
  for i = 1, 1000 do shared[i] = text end
  print(pcall(flow.secret, shared))
  print(pcall(flow.secret, { "small-5678" }))]], {}, { before = { "--memory-limit", "32M" } })
check.equal(result.stderr, "")
check.equal(result.stdout, "false\tnot enough memory\nfalse\tnot enough memory\ntrue\t<redacted>\n")
