-- Messages to runs that aren't there, are over or belong to another user are refused, and so are values that no run can take.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local binary = kept.binary(host.binary)
local function command(folder, ...)
  return flow.exec({ ... }, { cwd = folder, check = false }):await()
end
local function refused(result, status, ...)
  check.equal(result.status, status, result.stderr)
  check.contains(result.stderr, ...)
end

-- There is no store, or no such run.
local script = kept.script [[
local AskOp = flow.op("AskOp", function(ctx)
  effect(ctx:wait_for("n", { type = "integer" }))
  effect(ctx:wait_for("n", { type = "integer" }))
end)
AskOp:run():await()
]]
refused(command(script.folder, binary, "--send", "r1", "n=1"), 1, "there is no store '.flowlua'")
local id = script:run({ "--keep" }).stderr:match "^(r%w+) waits"
refused(command(script.folder, binary, "--send", "r1zz", "n=1"), 2, "there is no run 'r1zz'")
refused(command(script.folder, binary, "--send", "", "n=1"), 2, "option '--send' needs a run")
refused(command(script.folder, binary, "--send", id, "=1"), 2, "option '--send' needs messages")
for _, value in ipairs { "", "1.5", "x", "0x10", "99999999999999999999", "1\n2", " 1", "\xff" } do
  refused(command(script.folder, binary, "--send", id, "n=" .. value), 2, "waits for <n> of type integer, not '")
end
-- One that is refused keeps the others from being sent.
refused(command(script.folder, binary, "--send", id, "n=1", "n=x"), 2, "of type integer, not 'x'")

-- Another user.
if command("/", "id", "-u").stdout == "0\n" then
  local result = command(script.folder, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary, "--store",
    script.folder .. "/.flowlua", "--send", id, "n=1")
  -- Somebody without rights can't read the program in some folders.
  if not result.stderr:find "setpriv: failed to execute" then
    check.equal(result.status == 0, false)
    check.contains(result.stderr, "the store '" .. script.folder .. "/.flowlua'")
  end
end

-- From Lua: the run and the value are checked; one of another type is dropped when it is taken.
local sender = kept.script(([[
local id = %q
print(pcall(flow.send, "r1zz", "n", 1))
print(pcall(flow.send, 5, "n", 1))
print(pcall(flow.send, id, "", 1))
print(pcall(flow.send, id, "n"))
print(pcall(flow.send, id, "n", print))
print(pcall(flow.send, id, "n", flow.secret "t0p-s3cret"))
flow.send(id, "n", "one")
flow.send(id, "n", 1)
flow.send(id, "n", 1)
flow.send(id, "n", 1)
]]):format(id))
local sent = command(script.folder, binary, "--keep", "--store", script.folder .. "/.flowlua", sender.path)
check.equal(sent.status, 0, sent.stderr)
check.contains(sent.stdout, "bad use of 'send' (there is no run 'r1zz'",
  "bad argument #1 to 'send' (run or the id of a kept run expected, got number)", "bad argument #2 to 'send'",
  "bad argument #3 to 'send' (value expected", "bad use of 'send' (the value contains the text of a secret, which isn't kept)")
check.equal(select(2, sent.stdout:gsub("false\t", "")), 6)
check.lacks(sent.stdout, "t0p-s3cret")

-- Sent twice they are two: each wait has one of them, and a third is left.
local log, result = script:resume()
check.equal(result.status, 0, result.stderr)
check.contains(log, "[AskOp] Dropped message <n>: integer expected, got one")
script:expect_effects("1", "1")

-- Over.
refused(command(script.folder, binary, "--send", id, "n=1"), 2, "run " .. id .. " has finished: it takes no messages")
sent = command(script.folder, binary, "--keep", "--store", script.folder .. "/.flowlua", sender.path)
check.contains(sent.stderr, "bad use of 'send' (run " .. id .. " has finished: it takes no messages)")
check.equal(sent.status, 1)

-- Names that nobody could send, and waits of what each process executes, are refused at once.
script = kept.script [[
local function refused(ctx, name)
  local ok, problem = pcall(ctx.wait_for, ctx, name, { timeout = 60 })
  effect(problem.kind .. ": " .. problem.message:gsub("^.-lua:%d+: ", ""):gsub("\n.*", ""))
end
local wrong = "x"
local LateOp = flow.op("LateOp", function(ctx) refused(ctx, "late") end)
local InnerOp = flow.op("InnerOp", function() LateOp:run {} end)
local AskOp = flow.op("AskOp", { run = function(ctx)
  refused(ctx, "x=y")
  refused(ctx, "x\0y")
  ctx:defer(function() refused(ctx, "late") end)
end, undo = function(ctx) refused(ctx, "late") end })
local FailOp = flow.op("FailOp", function(ctx) ctx:fail "no" end)
flow.new("f"):add(AskOp):add(FailOp):add_finally(LateOp):add_finally(InnerOp):run()
]]
local late = "usage: bad use of 'wait_for' (final steps, cleanups and undos of a kept run can't wait for messages: "
  .. "wait in an op before them)"
script:expect(1, { "--keep" }, "usage: bad argument #1 to 'wait_for' (name without '=' and NUL bytes expected, got 'x=y')",
  "usage: bad argument #1 to 'wait_for' (name without '=' and NUL bytes expected, got 'x\\0y')", late, late, late, late)

-- `flow.send` refuses them with the same words.
for _, run in ipairs { flow.op("WaitOp", function(ctx) ctx:wait_for "x" end):start(), "r7k2" } do
  check.usage(function() flow.send(run, "x=y", 1) end, "send", "#2", "name without '=' and NUL bytes expected, got 'x=y'")
  check.usage(function() flow.send(run, "x\0y", 1) end, "send", "#2", "name without '=' and NUL bytes expected, got 'x\\0y'")
  if run ~= "r7k2" then run:cancel() end
end

-- An answer about several items has the number of one.
script = kept.script [[
local PayOp = flow.op("PayOp", { needs = { n = "integer" }, effect = "once", run = function()
  if os.getenv "DIE" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
end })
flow.new("pays"):add_grouped(PayOp, { input = "ns", max_concurrent = 1 }):run { ns = { 1, 2 } }
]]
script:run { "--keep", environment = { DIE = 1 } }
id = script:run({ "--resume" }).stderr:match "(r%w+) waits for <PayOp #1>"
refused(command(script.folder, binary, "--send", id, "PayOp=again"), 2,
  "run " .. id .. " waits for <PayOp #1>, not for <PayOp>")
check.equal(command(script.folder, binary, "--send", id, "PayOp #1=again", "--resume", script.path).status, 0)
