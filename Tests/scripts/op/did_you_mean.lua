-- A misspelt field is an error that suggests the right one or lists all of them.
local flow, check = require "flow", require "check"
local function f() end
local function op(field, meant)
  check.usage(function() flow.op("AOp", { run = f, [field] = 1 }) end, "#2", "'" .. field .. "'",
    "did you mean '" .. meant .. "'?")
end
op("need", "needs")
op("Needs", "needs")
op("geves", "gives")
op("dco", "doc")
op("primery_input", "primary_input")
op("primary_outputs", "primary_output")
op("tiemout", "timeout")
op("thraed", "thread")
local function dispatcher(field, meant)
  for _, make in ipairs {
    function(fields) flow.dispatcher(fields) end,
    function(fields) flow.new("f"):add_grouped(flow.op("AOp", f), fields) end,
  } do
    local ok, e = pcall(make, { input = "list", as = "x", [field] = 1 })
    check.equal(ok, false)
    check.equal(e.kind, "usage")
    check.contains(e, "'" .. field .. "'", "did you mean '" .. meant .. "'?")
  end
end
dispatcher("inptu", "input")
dispatcher("outputs", "output")
dispatcher("max_concurent", "max_concurrent")
dispatcher("allow_faliure", "allow_failure")
dispatcher("allowempty", "allow_empty")
dispatcher("failure", "failures")
dispatcher("colect", "collect")
local run = flow.new("f"):run()
check.usage(function() run:summary { tiem = "iso" } end, "#1", "did you mean 'time'?")
check.usage(function() run:summary { duration = true } end, "#1", "did you mean 'durations'?")
local far = check.usage(function() flow.op("AOp", { run = f, colour = 1 }) end, "'colour'", "known are",
  "'doc', 'effect', 'gives', 'grace', 'limit', 'memory', 'needs'")
check.lacks(far.message, "did you mean")
-- A message quotes no more than a line or two of a name without end.
local long = check.usage(function() flow.op("AOp", { run = f, [("needs"):rep(100000)] = 1 }) end, "unknown field")
assert(#long.message < 600)
