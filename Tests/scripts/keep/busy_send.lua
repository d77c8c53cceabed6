-- `flow.send` waits while another process writes into the store, and blocks nothing else; a message that is stopped isn't sent.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

-- Keeps the store busy until its input ends.
local busy = [[
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
store.execute("BEGIN IMMEDIATE")
print("busy", flush=True)
sys.stdin.read()
store.execute("COMMIT")
]]
local python = os.getenv "FLOWLUA_TEST_PYTHON" or "python3"

-- By the run, and by its id as another script does.
for _, target in ipairs { "run", "flow.runs()[1].id" } do
  local script = kept.script(([[
    local program
    local AskOp = flow.op("AskOp", function(ctx)
      effect(ctx:wait_for "n")
      effect(ctx:wait_for "n")
    end)
    local run = AskOp:start()
    local function send(value) flow.send(%s, "n", value) end
    program = flow.exec({ %q, "-c", %q, ".flowlua/store.sqlite" }, { stdin = "pipe" })
    assert(program:lines()() == "busy")
    local sending = flow.spawn(send, "late")
    local stopped = flow.spawn(send, "stopped")
    flow.sleep(0.2)
    effect(sending.state)
    stopped:cancel()
    stopped:wait()
    effect(stopped.state)
    program:close_stdin()
    program:await()
    sending:await()
    send "second"
    run:await()
  ]]):format(target, python, busy))
  local result = script:run { "--keep" }
  check.equal(result.status, 0, result.stderr)
  script:expect_effects("pending", "cancelled", "late", "second")
end
