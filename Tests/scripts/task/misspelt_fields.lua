-- A misspelt field or method of an object of flow, a key of its data, and a field of a response that wasn't awaited are errors.
local flow, check, testing = require "flow", require "check", require "flow.testing"
local run = flow.op("AOp", { gives = { total = "integer" }, run = function(ctx) ctx:set("total", 1) end }):run()
check.usage(function() return run.dta end, "a run has no field 'dta' (did you mean 'data'?)")
check.usage(function() return run.sumary end, "did you mean 'summary'?")
check.usage(function() return run.total end, "a run has no field 'total': its data has it (run.data.total)")
check.equal(run.data.totl, nil)
check.equal(run.something_else, nil)
check.equal(run[1], nil)
check.equal(run.data.total, 1)

local seen = testing.run(flow.op("FetchOp", function(ctx)
  local task = flow.http "http://h/"
  for _, name in ipairs { "status", "ok", "body", "headers", "json", "chunks" } do
    check.usage(function() return task[name] end, "'" .. name .. "' is of the response: await the request first")
  end
  check.equal(task.other, nil)
  local res = task:await()
  check.usage(function() return res.staus end, "a response has no field 'staus' (did you mean 'status'?)")
  check.equal(res.other, nil)
  check.usage(function() ctx:gte "body" end, "ctx has no field 'gte' (did you mean 'get'?)")
  check.usage(function() return ctx.user end, "ctx has no field 'user': ctx:get \"user\" reads the data")
  check.equal(ctx.other, nil)
  ctx:set("body", res.body)
end), { data = { user = "Ada" }, http = function() return "text" end })
check.equal(seen.error, nil)
check.equal(seen.data.body, "text")

local program = flow.exec { "echo", "text" }
check.usage(function() return program.stdot end, "a task has no field 'stdot' (did you mean 'stdout'?)")
check.usage(function() return program:close_stdn() end, "did you mean 'close_stdin'?")
check.equal(program.other, nil)
program:await()
check.usage(function() return flow.resolved(1).resutl end, "a task has no field 'resutl' (did you mean 'result'?)")

-- So are those of ops, flows, graphs and machines, and of the smaller objects; what has no value, or another name, is nil.
local AOp = flow.op("AOp", function() end)
local machine = flow.machine { name = "m", start = "a", flow.step("a", { run = AOp }) }
for _, case in ipairs {
  { AOp, "an op", "stert", "start" }, { AOp, "an op", "timeuot", "timeout" },
  { flow.ops.PrintOp, "an op", "wiht", "with" },
  { flow.new "f", "a flow", "ad", "add" }, { flow.new "f", "a flow", "Add_Finally", "add_finally" },
  { flow.graph "g", "a graph", "chekc", "check" }, { machine, "a machine", "contineu", "continue" },
  { flow.dispatcher { input = "list" }, "a dispatcher", "ouput", "output" },
  { flow.limit("l", 1), "a limit", "runing", "running" }, { flow.context(), "a context", "set_reslut", "set_result" },
  { flow.http.client { base = "http://h/" }, "a client", "gett", "get" },
} do
  local object, kind, name, near = table.unpack(case)
  check.usage(function() return object[name] end, ("%s has no field '%s' (did you mean '%s'?)"):format(kind, name, near))
  for _, other in ipairs { "something_else", "timeout", "undo", "cache", 1 } do check.equal(object[other], nil) end
end

-- An output that wasn't set isn't a missing input.
local missing = flow.op("UploadOp", { gives = { url = "string" }, run = function(ctx) ctx:set("ulr", "x") end }):run()
check.equal(tostring(missing.error), "[UploadOp] didn't set <url>, which it gives (did you mean <ulr>?)")
check.equal(missing.error.message, "can't find <url> in data bucket")
