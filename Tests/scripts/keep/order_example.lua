-- An order that a machine handles in many processes continues after each end and each kill, and is paid and refunded once.
-- clock: real: the example is another program
local check, flow, host = require "check", require "flow", require "host"
local fs = flow.fs

local folder
local function start(words, ...)
  local command = { "env", table.unpack(words.environment or {}) }
  command[#command + 1] = host.binary
  for _, word in ipairs(words) do command[#command + 1] = word end
  for _, word in ipairs { "examples/order.lua", folder, ... } do command[#command + 1] = word end
  return flow.exec(command, { check = false })
end
local function order(...)
  local result = start({}, ...):await()
  return result.stdout, result.status, result.stderr
end
local function account() return fs.exists(folder .. "/account") and fs.read(folder .. "/account") or "" end

-- Killed while it pays: the next process asks, and pays only if the reply is that it should.
folder = fs.temp_dir() .. "/17"
order("place", "3")
check.equal(start({ environment = { "ORDER_KILL=1" } }, "pay"):await().stdout, "paid: 60\n")
check.equal(account(), "+60\n")
for _ = 1, 2 do
  local out, status, err = order()
  check.equal(out .. status, "75")
  check.contains(err, "[order/PayOp] had started in run r", " PayOp=done --store ")
end
local run = select(3, order()):match "^(r%w+) waits for <PayOp>"
local settled = start({ "--send", run, "PayOp=done", "--store", folder .. "/.flowlua", "--resume" }):await()
check.equal(settled.stdout, "new, placed, payment, paid: waits for pack, cancel\n")
check.equal(order "pack", "new, placed, payment, paid, packed: waits for ship, damaged, cancel\n")
check.equal(order "damaged", "new, placed, payment, paid: waits for pack, cancel\n")
check.equal(account(), "+60\n")
local out, status = order "cancel"
check.equal(out .. status, "refunded: 60\ncancelled\n0")
check.equal(account(), "+60\n-60\n")

-- Killed at any moment: no event is lost, and nothing is done twice.
folder = fs.temp_dir() .. "/18"
local seed = os.time()
math.randomseed(seed)
for _, event in ipairs { "place", "change", "pay", "pack", "damaged", "pack", "ship" } do
  local program = start({}, event, "2")
  flow.sleep(math.random() * 0.1)
  flow.exec({ "kill", "-KILL", tostring(program.pid) }, { check = false }):await()
  program:await()
  local lines = fs.exists(folder .. "/events") and fs.read(folder .. "/events") or ""
  -- Not even its event was written, so its sender would send it again.
  if select(2, lines:gsub(event, "")) < (event == "pack" and lines:find "damaged" and 2 or 1) then
    order(event, "2")
  end
end
-- If it was killed while it paid, somebody looks into the account.
local verdict = account() == "" and "PayOp=again" or "PayOp=done"
start({ "--settle", verdict }):await()
check.equal(order(), "new, placed, payment, paid, packed, shipped: waits for deliver, return\n", "seed " .. seed)
check.equal(account(), "+40\n", "seed " .. seed)
check.equal(order "deliver", "delivered: 2\n")
