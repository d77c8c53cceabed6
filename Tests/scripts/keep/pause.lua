-- A kept run that ends its process by `os.exit` or SIGTERM is only paused: nothing is undone, and the next process continues.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local text = [[
local PayOp = flow.op("PayOp", {
  run = function(ctx) effect "pay" ctx:set("paid", true) end,
  undo = function() effect "refund" end,
})
local machine = flow.machine { name = "m", start = "a", flow.step("a", { run = PayOp }) }
local WaitOp = flow.op("WaitOp", function(ctx)
  ctx:defer(function() effect "cleanup" end)
  local how = os.getenv "HOW"
  if how == "wait" then
    effect "waiting"
    flow.sleep(600)
  elseif how == "exit" then
    os.exit()
  elseif how == "close" then
    os.exit(0, true)
  end
end)
flow.new("order"):add(PayOp):add_grouped(PayOp, { input = "list", as = "item" }):add(machine):add(WaitOp)
  :data { list = { 1 } }:run()
effect "end"
]]
local PAID = { "pay", "pay", "pay" }

local function counts(script) return script:run({ "--runs" }).stdout:match "  (%d+ finished.-)  +%S+%.lua" end

-- The script ends the process; nothing is lost by any of them, and old starts don't pile up.
local script = kept.script(text)
for number, how in ipairs { "exit", "close", "exit", "close" } do
  local result = script:run { "--resume", environment = { HOW = how } }
  check.equal(result.status, 0, result.stderr)
  local effects = table.concat(script:effects(), " "):gsub(" ?cleanup", "")
  check.equal(effects, number == 1 and table.concat(PAID, " ") or "")
  assert(counts(script):find "^3 finished", counts(script))
  assert(not counts(script):find "[2-9] started", counts(script))
end
check.contains(script:run({ "--runs" }).stdout, " unfinished ")
script:run { "--resume" }
script:expect_effects("cleanup", "end")
check.contains(script:run({ "--runs" }).stdout, " finished ")

-- Ends a program by a signal after it has begun to wait.
local function signalled(signal, options)
  local program = script:start(options)
  local path = script.folder .. "/effects"
  kept.waits(function() return flow.fs.exists(path) and flow.fs.read(path):find "waiting" end)
  flow.exec { "kill", "-" .. signal, tostring(program.pid) }:await()
  return program:await()
end

-- SIGTERM and SIGHUP end the process: cleanups are for it, undos for the run.
for _, case in ipairs { { "TERM", 75 }, { "HUP", 129 } } do
  local signal, status = table.unpack(case)
  script = kept.script(text)
  local result = signalled(signal, { "--keep", environment = { HOW = "wait" } })
  check.equal(result.status, status, result.stderr)
  script:expect_effects("pay", "pay", "pay", "waiting", "cleanup")
  script:run { "--resume" }
  script:expect_effects("cleanup", "end")
end

-- Ctrl-C cancels the run itself, and so does SIGTERM when nothing continues it.
script = kept.script(text)
check.equal(signalled("INT", { "--keep", environment = { HOW = "wait" } }).status, 130)
script:expect_effects("pay", "pay", "pay", "waiting", "cleanup", "refund", "refund", "refund")
check.equal(signalled("TERM", { environment = { HOW = "wait" } }).status, 143)
script:expect_effects("pay", "pay", "pay", "waiting", "cleanup", "refund", "refund", "refund")
