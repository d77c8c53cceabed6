-- The summary of a run has the lines of the runs that its ops have started, with the name of that op.
local flow, check = require "flow", require "check"

local LeafOp = flow.op("LeafOp", function(ctx, text)
  ctx:log("leaf", text)
  ctx:set("leaf", text)
  flow.sleep(1)
  ctx:log("awake", text)
end)
local FailOp = flow.op("FailOp", function(ctx) ctx:fail "no" end)
local MiddleOp = flow.op("MiddleOp", function(ctx)
  check.equal(FailOp:run().ok, false)
  ctx:log "in the middle"
end)
local OuterOp = flow.op("OuterOp", { needs = { n = "integer" }, run = function(ctx)
  local n = ctx:get "n"
  if n == 1 then
    LeafOp("a"):run()
    ctx:log "between"
    flow.new("inner"):add(LeafOp "b"):add_grouped(MiddleOp, { input = "list", as = "x" }):run { list = { 1 } }
  else
    local first, second = LeafOp("c"):start(), LeafOp("d"):start()
    first:await()
    second:await()
  end
end })

local function lines_of(run)
  local lines = {}
  for line in run:summary { time = "iso" }:gmatch "[^\n]+" do
    lines[#lines + 1] = line:match "^2000%-01%-01T00:00:(%d%d%.).* (%[.*)$" and line:gsub("^.-:00:(%d%d).-Z ", "%1 ")
  end
  return lines
end

local one = OuterOp:run { n = 1 }
check.equal(table.concat(lines_of(one), "\n"), [[
00 [DataBucket] start with:
00 [OuterOp] WillStart
00 [OuterOp/LeafOp] WillStart
00 [OuterOp/LeafOp] leaf a
01 [OuterOp/LeafOp] awake a
01 [OuterOp/LeafOp] DidFinish: successfully
01 [OuterOp] between
01 [OuterOp/inner] WillStart
01 [OuterOp/LeafOp] WillStart
01 [OuterOp/LeafOp] leaf b
02 [OuterOp/LeafOp] awake b
02 [OuterOp/LeafOp] DidFinish: successfully
02 [OuterOp/FlowArrayGroupDispatcher] group created: 1
02 [OuterOp/MiddleOp #1] WillStart
02 [OuterOp/MiddleOp #1/FailOp] WillStart
02 [OuterOp/MiddleOp #1/FailOp] DidFinish: withError: no
02 [OuterOp/MiddleOp #1] in the middle
02 [OuterOp/MiddleOp #1] DidFinish: successfully
02 [OuterOp/FlowArrayGroupDispatcher] all finished. output size: 1
02 [OuterOp/inner] DidFinish: successfully
02 [OuterOp] DidFinish: successfully
02 [DataBucket] end with:]])

-- Runs at the same time: their lines alternate as those of other ops.
local two = flow.new("all"):add_grouped(OuterOp, { input = "list", as = "n" }):run { list = { 2, 2 } }
local text = two:summary()
for _, line in ipairs {
  "[OuterOp #1/LeafOp] leaf c", "[OuterOp #1/LeafOp] awake d", "[OuterOp #2/LeafOp] DidFinish: successfully",
} do
  check.contains(text, "M " .. line)
end

-- A run of an op that has ended, which ends with the run around it.
local LateOp = flow.op("LateOp", function() LeafOp("late"):start() end)
local three = flow.new("late"):add(LateOp):add(flow.ops.SleepOp(2)):run()
check.contains(three:summary(), "M [LateOp/LeafOp] awake late\n")

-- The limit of a log counts the lines of such runs.
local ManyOp = flow.op("ManyOp", function()
  for i = 1, 300 do flow.op("LineOp", function(ctx) ctx:log("line", i) end):run() end
end)
local four = ManyOp:run({}, { log_limit = 2000 })
local all = four:summary()
check.equal(all:find("line 1\n", 1, true), nil)
check.contains(all, "M [ManyOp/LineOp] line 300\n")
check.equal(four.dropped_events > 0, true)
