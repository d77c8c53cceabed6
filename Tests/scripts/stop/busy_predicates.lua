-- Functions that the engine needs at once, and those of a retry, end with the timeout and with a signal, also if they are busy.
-- clock: real: busy code is stopped by the machine's clock
local check, host = require "check", require "host"

-- Each is a flow with a timeout, or with an op that has one.
local SCRIPT = [[
  local flow = require "flow"
  io.stdout:setvbuf "no"
  local seconds = tonumber(arg[1])
  local function busy() print "ready" while true do pcall(function() while true do end end) end end
  local function fails() error "no" end
  local function none() end
  local list = { 1, 2 }
  local EchoOp = flow.op("EchoOp", { needs = { n = "integer" }, gives = { m = "integer" },
    run = function(ctx) ctx:set("m", ctx:get "n") end })
  local function group(options)
    options.input, options.output = "list", "ms"
    return flow.new("group"):data { list = list }:add_grouped(EchoOp, options):with { timeout = seconds }
  end
  local made = {
    needs = function()
      return flow.op("NeedsOp", { timeout = seconds, needs = { list = busy }, run = none })
    end,
    flow_needs = function()
      local NeedsOp = flow.op("NeedsOp", { needs = { list = busy }, run = none })
      return flow.new("outer"):add(NeedsOp):with { timeout = seconds }
    end,
    gives = function()
      local GivesOp = flow.op("GivesOp", { gives = { list = busy }, run = function(ctx) ctx:set("list", list) end })
      return flow.new("outer"):add(GivesOp):with { timeout = seconds }
    end,
    label = function() return group { label = busy } end,
    stop_when = function() return group { stop_when = busy } end,
    when = function()
      return flow.op("WhenOp", { timeout = seconds, retry = { attempts = 2, when = busy }, run = fails })
    end,
    when_later = function()
      local function later() flow.sleep(0.01) return busy() end
      return flow.op("WhenOp", { timeout = seconds, retry = { attempts = 2, when = later }, run = fails })
    end,
    waiting_when = function()
      local function waits() print "ready" flow.sleep(100) end
      return flow.op("WhenOp", { timeout = seconds, retry = { attempts = 2, when = waits }, run = fails })
    end,
    delay = function()
      return flow.op("DelayOp", { timeout = seconds, retry = { attempts = 2, delay = busy }, run = fails })
    end,
    flow_when = function()
      local FailOp = flow.op("FailOp", fails)
      return flow.new("outer"):add(FailOp):with { timeout = seconds, retry = { attempts = 2, when = busy } }
    end,
  }
  if arg[2] then
    -- An op after it shows that the stop has ended with it.
    local NextOp = flow.op("NextOp", function() flow.sleep(0) print "next" end)
    flow.new("all"):add(NextOp):add(made[arg[2] ]()):add_finally(NextOp):start { list = list }
    return
  end
  for name, make in pairs(made) do
    local run = make():run { list = list }
    print(name, run.error and run.error.kind)
    local NextOp = flow.op("NextOp", function() flow.sleep(0) end)
    local outer = flow.new("outer"):add(make(), { undo = none }):add_finally(NextOp):run { list = list }
    print(name, outer.error and outer.error.kind)
  end
]]
local name = os.tmpname()
local file = assert(io.open(name, "w"))
file:write(SCRIPT)
file:close()
local _ <close> = setmetatable({}, { __close = function() os.remove(name) end })

local result = host.run(host.binary, { name, "0.05" })
check.equal(result.status, 0, result.stderr)
local kinds = {}
for case, kind in result.stdout:gmatch "([%w_]+)\t(%w+)\n" do
  check.equal(kind, "timeout", case)
  kinds[#kinds + 1] = case
end
check.equal(#kinds, 20)

for _, case in ipairs { "needs", "gives", "label", "stop_when", "when", "when_later", "delay", "flow_when" } do
  local ended = host.signalled(host.binary, { name, "60", case }, "TERM")
  check.equal(ended.status, 143, case)
  check.contains(ended.stdout, "next\nready\nnext\n")
end
