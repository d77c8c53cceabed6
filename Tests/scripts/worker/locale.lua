-- An op in a worker can ask for the locale and not set it: it is the whole process's.
local check, flow = require "check", require "flow"

local run = flow.op("LocaleOp", { thread = "worker", gives = { name = "string", problem = "string" }, run = function(ctx)
  ctx:set("name", os.setlocale())
  ctx:set("name", os.setlocale(nil, "numeric"))
  ctx:set("problem", select(2, pcall(os.setlocale, "C")))
end }):run()
check.equal(run.ok, true, run.error)
check.equal(run.data.name, os.setlocale(nil, "numeric"))
check.contains(run.data.problem, "os.setlocale can't set a locale in a worker")
check.equal(os.setlocale "C", "C")
