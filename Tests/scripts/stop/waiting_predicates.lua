-- Functions that the engine needs at once, and texts, end with a signal also if they wait over and over or run ops.
-- clock: real: signals of the system
local check, host = require "check", require "host"

local SCRIPT = [[
  local flow = require "flow"
  io.stdout:setvbuf "no"
  local function none() end
  local InnerOp, BusyOp = flow.op("InnerOp", function() flow.sleep(0.01) end), flow.op("BusyOp", none)
  local ways = {
    waits = function() while true do pcall(flow.sleep, 0.01) end end,
    -- Below a C function it can't be parked.
    in_place = function() table.sort({ 1, 2 }, function() while true do pcall(flow.sleep, 0.01) end end) end,
    runs = function() while true do pcall(InnerOp.run, InnerOp) end end,
    runs_busy = function() while true do pcall(BusyOp.run, BusyOp) end end,
  }
  local way = ways[arg[1] ]
  local function waits() print "ready" way() end
  local function text() return setmetatable({}, { __tostring = waits }) end
  local list = { 1, 2 }
  local EchoOp = flow.op("EchoOp", { needs = { n = "integer" }, gives = { m = "integer" },
    run = function(ctx) ctx:set("m", ctx:get "n") end })
  local function group(options)
    options.input, options.output = "list", "ms"
    return flow.new("group"):add_grouped(EchoOp, options)
  end
  local made = {
    needs = function() return flow.op("NeedsOp", { needs = { list = waits }, run = none }) end,
    gives = function()
      return flow.op("GivesOp", { gives = { list = waits }, run = function(ctx) ctx:set("list", list) end })
    end,
    label = function() return group { label = waits } end,
    stop_when = function() return group { stop_when = waits } end,
    text = function() return flow.op("TextOp", function(ctx) ctx:set("a", text()) end) end,
    error = function() return flow.op("ErrorOp", function() error(text()) end) end,
  }
  local NextOp = flow.op("NextOp", function() flow.sleep(0) print "next" end)
  flow.new("all"):add(made[arg[2] ]()):add_finally(NextOp):start { list = list }
]]
local name = os.tmpname()
local file = assert(io.open(name, "w"))
file:write(SCRIPT)
file:close()
local _ <close> = setmetatable({}, { __close = function() os.remove(name) end })

-- A text ends with the process, which cuts it with the cleanups if it is too slow. The interruption may be the error of code
-- that follows the text, or that the text has called.
local is_of_text = { error = true, text = true }
for place, ways in pairs {
  needs = { "waits", "in_place", "runs", "runs_busy" }, gives = { "waits" }, label = { "waits" }, stop_when = { "runs" },
  text = { "in_place" }, error = { "waits" },
} do
  for _, way in ipairs(ways) do
    for signal, status in pairs { INT = 130, TERM = 143 } do
      local result = host.signalled(host.binary, { name, way, place }, signal)
      if signal == "TERM" or not is_of_text[place] then
        check.equal(result.status, status, ("%s %s %s: %s"):format(place, way, signal, result.stdout))
      end
      if not is_of_text[place] then check.contains(result.stdout, "next\n") end
    end
  end
end
