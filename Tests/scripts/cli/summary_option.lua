-- The option --summary prints the summary of each run to stderr at its end.
local host = require "host"
local check = require "check"
local text = [[
  local flow = require "flow"
  local InnerOp = flow.op("InnerOp", function(ctx) ctx:log('said "so"\n\255') end)
  local OuterOp = flow.op("OuterOp", { needs = { key = "string" }, run = function(ctx)
    InnerOp:run()
    ctx:progress(1, 2)
    ctx:set("other", 1)
  end })
  io.stderr:write("first\n")
  flow.new("outer"):add(OuterOp):data { key = flow.secret "hidden" }:run()
  io.stderr:write("second\n")
  print(flow.new("failing"):add(OuterOp):run().ok)
]]
for _, option in ipairs { "--summary", "--summary=text" } do
  local result = host.script(text, {}, { before = { option } })
  check.equal(result.status, 0)
  check.equal(result.stdout, "false\n")
  check.equal(check.masked(result.stderr), [[
first
====== Flow Summary ======
T [DataBucket] start with:
key: <redacted>
T [OuterOp] WillStart
T [OuterOp/InnerOp] WillStart
T [OuterOp/InnerOp] said "so"\n]] .. "\255\n" .. [[
T [OuterOp/InnerOp] DidFinish: successfully
T [DataBucket] add for other: 1
T [OuterOp] DidFinish: successfully
T [DataBucket] end with:
key: <redacted>
other: 1
Flow isSuccess: true
======    Ending    ======
second
====== Flow Summary ======
T [DataBucket] start with:
T [OuterOp] WillStart
T [OuterOp] DidFinish: withInsufficientInputData: can't find <key> in data bucket
T [DataBucket] end with:
Flow isSuccess: false
======    Ending    ======
]])
end

local result = host.script(text, {}, { before = { "--summary=json", "--virtual-clock" } })
check.equal(result.status, 0)
check.contains(result.stderr,
  [["started":946684800,]], [["id":4294967296,"parent":1,"path":"outer/OuterOp/InnerOp","run":"]])
-- Without what identifies runs and executions.
local shown = result.stderr:gsub('"identifier":"%x+%-%d+","started":946684800,"ended":946684800,', "")
  :gsub('"id":%d+,"parent":%d+,"path":"[^"]+","run":"%x+%-%d+","lane":0,', "")
check.equal(shown, [[
first
{"run":"outer","id":1,"state":"succeeded","duration":0,"finished_early":false,"data":{"key":"<redacted>","other":1},"events":[]]
  .. [[{"time":0,"kind":"start","op":"OuterOp","attempt":1},]]
  .. [[{"time":0,"kind":"start","op":"InnerOp","attempt":1},]]
  .. [[{"time":0,"kind":"finish","op":"InnerOp","attempt":1,"message":"successfully"},]]
  .. [[{"time":0,"kind":"progress","op":"OuterOp","attempt":1,"done":1,"total":2},]]
  .. [[{"time":0,"kind":"set","op":"OuterOp","attempt":1,"key":"other","value":"1"},]]
  .. [[{"time":0,"kind":"finish","op":"OuterOp","attempt":1,"message":"successfully"}]}]] .. "\n" .. [[
second
{"run":"failing","id":3,"state":"failed","duration":0,"finished_early":false,]]
  .. [["error":{"kind":"insufficient_input","message":"can't find <key> in data bucket","op":"OuterOp",]]
  .. [["path":"failing/OuterOp"},"data":{},]]
  .. [["events":[{"time":0,"kind":"start","op":"OuterOp","attempt":1},]]
  .. [[{"time":0,"kind":"finish","op":"OuterOp","attempt":1,]]
  .. [["message":"withInsufficientInputData: can't find <key> in data bucket"}]}]] .. "\n")

-- A run that ends after the main chunk, and one that an error of it cancels.
result = host.script([[
  local flow = require "flow"
  flow.op("SlowOp", function() flow.sleep(0.01) end):start()
]], {}, { before = { "--summary" } })
check.contains(result.stderr, "[SlowOp] DidFinish: successfully")
result = host.script([[
  local flow = require "flow"
  flow.op("SlowOp", function() flow.sleep(100) end):start()
  error("failed", 0)
]], {}, { before = { "--summary" } })
check.contains(result.stderr, "[SlowOp] DidFinish: cancelled: failed")
check.equal(result.status, 1)
