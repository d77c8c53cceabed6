-- A misspelt field of a run, a key of its data, and a field of a response that wasn't awaited are errors that say so.
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
  ctx:set("body", task:await().body)
end), { http = function() return "text" end })
check.equal(seen.error, nil)
check.equal(seen.data.body, "text")

-- An output that wasn't set isn't a missing input.
local missing = flow.op("UploadOp", { gives = { url = "string" }, run = function(ctx) ctx:set("ulr", "x") end }):run()
check.equal(tostring(missing.error), "[UploadOp] didn't set <url>, which it gives (did you mean <ulr>?)")
check.equal(missing.error.message, "can't find <url> in data bucket")
