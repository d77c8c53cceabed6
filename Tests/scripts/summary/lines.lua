-- Every line of a summary about ops, data and groups is word for word as documented.
local flow, check = require "flow", require "check"
local function line_of(run, pattern)
  assert(run.state ~= "pending")
  for line in check.masked(run:summary()):gmatch("[^\n]+") do
    if line:find(pattern, 1, true) then return line end
  end
end
local function finish(options, data)
  if type(options) == "function" then options = { run = options } end
  options.run = options.run or function() end
  return line_of(flow.op("AnOp", options):run(data), "DidFinish: ")
end
check.equal(finish(function() end), "T [AnOp] DidFinish: successfully")
check.equal(finish(function(ctx) ctx:fail("no luck") end), "T [AnOp] DidFinish: withError: no luck")
check.equal(finish { needs = { email = "string" } },
  "T [AnOp] DidFinish: withInsufficientInputData: can't find <email> in data bucket")
check.equal(finish(function(ctx) ctx:get("email") end),
  "T [AnOp] DidFinish: withInsufficientInputData: can't find <email> in data bucket")
local mismatch = "<password> in data bucket is <123456> with type <integer>, but NOT type <string>."
check.equal(finish({ needs = { password = "string" } }, { password = 123456 }),
  "T [AnOp] DidFinish: withMismatchInputDataType: " .. mismatch)
check.equal(finish { gives = { url = "string" } },
  "T [AnOp] DidFinish: withMissingOutputData: can't find <url> in data bucket")
check.equal(finish({ gives = { password = "string" } }, { password = 123456 }),
  "T [AnOp] DidFinish: withMismatchOutputDataType: " .. mismatch)

local run = flow.op("SetOp", function(ctx)
  ctx:set("x", 1) ctx:set("x", 2) ctx:set("x", nil) ctx:log("a", 1, nil, true)
end):run()
check.equal(line_of(run, "add"), "T [DataBucket] add for x: 1")
check.equal(line_of(run, "replace"), "T [DataBucket] replace for x: 1 -> 2")
check.equal(line_of(run, "remove"), "T [DataBucket] remove for x")
check.equal(line_of(run, "[SetOp] a"), "T [SetOp] a 1 nil true")

local MemberOp = flow.op("MemberOp", { needs = { image = "any" }, run = function(ctx)
  if ctx:get("image") == "bad" then error("bad image", 0) end
end })
local function group(images)
  return flow.new("group"):data { images = images }:add_grouped(MemberOp, { input = "images" }):run()
end
run = group { 1, 2, 3, 4 }
check.equal(line_of(run, "created"), "T [FlowArrayGroupDispatcher] group created: 4")
check.equal(line_of(run, "all"), "T [FlowArrayGroupDispatcher] all finished. output size: 4")
check.equal(line_of(run, "#3] W"), "T [MemberOp #3] WillStart")
run = group { "bad" }
check.equal(line_of(run, "#1] D"), "T [MemberOp #1] DidFinish: withError: bad image")
check.equal(line_of(run, "[Group]"), "T [Group] not allow failure in group. stop immediately.")
check.equal(line_of(group {}, "[Group]"),
  "T [Group] no operation to run for group; please make sure the input data: <images> is not empty")
check.equal(line_of(run, "isSuccess"), "Flow isSuccess: false")
