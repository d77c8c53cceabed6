-- flow.wrap makes an op around another one: a decorator.
local check = require "check"
local flow = require "flow"

local function lines(run)
  local found = {}
  for line in run:summary():gmatch "[AP]M (%[[^\n]*)\n" do found[#found + 1] = line end
  return table.concat(found, "\n")
end

local attempts = 0
local UploadOp = flow.op("UploadOp", {
  doc = "Uploads one image.",
  needs = { image = "string", quality = "integer?" }, gives = { url = "string" },
  primary_input = "image", retry = { attempts = 2 }, timeout = 10,
  run = function(ctx)
    attempts = attempts + 1
    if attempts == 1 then ctx:fail "busy" end
    flow.sleep(0.001)
    ctx:set("url", ctx:get "image" .. (ctx.index or ""))
  end,
})
local LoggedOp = flow.wrap(UploadOp, function(ctx, run)
  local given = run()
  ctx:log(ctx.name, given.url, ctx:get "url")
  given.url = "a copy"
  return given
end)

-- It declares what the other one does; the policy stays with that.
check.equal(tostring(LoggedOp), "op: UploadOp")
check.equal(LoggedOp.doc, "Uploads one image.")
check.same(LoggedOp.needs, { image = "string", quality = "integer?" })
check.same(LoggedOp.gives, { url = "string" })
check.equal(LoggedOp.primary_input, "image")
check.equal(LoggedOp.primary_output, "url")
check.equal(LoggedOp.retry, nil)
check.equal(LoggedOp.timeout, nil)
check.equal(LoggedOp.thread, "main")

-- Both have their lines.
local run = LoggedOp:with({ name = "LoggedOp" }):run { image = "a" }
check.equal(run.data.url, "a")
check.equal(lines(run), [[
[DataBucket] start with:
[LoggedOp] WillStart
[UploadOp] WillStart
[UploadOp] Retry 2/2 in 0s: busy
[DataBucket] add for url: a
[UploadOp] DidFinish: successfully
[LoggedOp] LoggedOp a a
[LoggedOp] DidFinish: successfully
[DataBucket] end with:]])

-- In a group it is for one item, in its bucket, with its index.
run = flow.new("group"):data({ images = { "a", "b", "c" } })
  :add_grouped(LoggedOp, { input = "images", output = "urls", max_concurrent = 2 }):run()
check.same(run.data.urls, { "a1", "b2", "c3" })
check.contains(run:summary(), "[UploadOp #3] UploadOp #3 c3 c3\n")

-- Not at all, twice, at once, with data.
local count = 0
local CountOp = flow.op("CountOp", function(ctx)
  count = count + 1
  if ctx:has "seconds" then flow.sleep(ctx:get "seconds") end
end)
local function around(body) return flow.wrap(CountOp, body):run() end
check.equal(around(function() end).ok, true)
check.equal(count, 0)
check.equal(around(function(_, execute) execute() execute() end).ok, true)
check.equal(count, 2)
run = around(function(_, execute)
  flow.when_all_succeed { flow.spawn(execute), flow.spawn(function() return execute() end) }:await()
  execute { seconds = 0.001 }
end)
check.equal(run.ok, true)
check.equal(count, 5)
check.contains(run:summary(), "[DataBucket] add for seconds: 0.001\n")

-- It still has to give what it declares.
check.equal(flow.wrap(UploadOp, function() end):run({ image = "a" }).error.kind, "missing_output")
check.equal(flow.wrap(UploadOp, function(ctx) ctx:set("url", "cached") end):run({ image = "a" }).ok, true)
check.equal(LoggedOp:run().error.kind, "insufficient_input")

-- The error of the op is raised at run(), and stays the same on its way.
local FailOp = flow.op("FailOp", function(ctx) ctx:fail("no space", { code = 28 }) end)
local caught
run = flow.wrap(FailOp, function(_, execute)
  local ok, err = pcall(execute)
  check.equal(ok, false)
  caught = err
  error(err)
end):with({ name = "AroundOp" }):run()
check.equal(run.error, caught)
check.equal(caught.code, 28)
check.equal(caught.op, "FailOp")
check.contains(run:summary(), "[FailOp] DidFinish: withError: no space\n",
  "[AroundOp] DidFinish: withError: no space\n")
check.equal(flow.wrap(FailOp, function(_, execute) pcall(execute) end):run().ok, true)
local tries = 0
run = flow.wrap(FailOp, function(_, execute) tries = tries + 1 execute() end):with({ retry = 3 }):run()
check.equal(tries, 3)
check.equal(run.error.message, "no space")

-- Arguments are those of the op within; a class gets them as well.
local GreetOp = flow.op("GreetOp", function(ctx, a, b) ctx:log(a, b) end)
local AroundOp = flow.wrap(GreetOp, function(ctx, execute) ctx:log "before" execute() end)
check.contains(AroundOp("hello", 2):with({ timeout = 5 }):run():summary(),
  "[GreetOp] before\n", "[GreetOp] hello 2\n")
run = flow.wrap(GreetOp, function(ctx, execute, ...)
  ctx:log(select("#", ...), ...)
  execute()
end)("a", nil, nil):run()
check.contains(run:summary(), "[GreetOp] 3 a nil nil\n", "[GreetOp] a nil\n")
-- Each of several wrappers gets them, and only those of its own call.
local seen = {}
local function noting(op) return flow.wrap(op, function(_, execute, n) seen[#seen + 1] = n or "none" execute() end) end
local TwiceOp = noting(noting(GreetOp))
TwiceOp(1):run()
TwiceOp(2):with({ retry = 2 }):run()
noting(GreetOp "x"):run()
check.same(seen, { 1, 1, 2, 2, "none" })
local RepeatOp = flow.wrap(flow.ops.PrintOp, {
  gives = { times = "integer" },
  run = function(ctx, execute, text)
    for _ = 1, #text do execute() end
    ctx:set("times", #text)
  end,
})
check.equal(RepeatOp("abc"):run().data.times, 3)
local AroundPrintOp = flow.wrap(flow.ops.PrintOp, function(_, execute) execute() end)
check.contains(AroundPrintOp("hello"):run():summary(), "[PrintOp] hello\n")
check.equal(AroundPrintOp:with({ name = "LoudOp", retry = 2 })("x").name, "LoudOp")
check.equal(AroundPrintOp:with({ name = "LoudOp", retry = 2 })("x").retry.attempts, 2)
for _, use in ipairs {
  function() AroundPrintOp:run() end, function() flow.new("f"):add(AroundPrintOp) end,
} do check.raises(use, "op 'PrintOp' needs its arguments: call PrintOp(…) first") end
check.raises(function() flow.wrap(flow.ops.ReadFileOp, print)(1) end,
  "op 'ReadFileOp' takes no arguments: it is written in Swift")

-- Around a flow, a machine, another such op, and an op that runs in a worker.
local inner = flow.new("inner"):data({ seconds = 0 }):add(CountOp):gives({ seconds = "number" })
run = flow.new("outer"):add(flow.wrap(inner, function(ctx, execute)
  ctx:log(execute().seconds)
end):with { name = "InnerOp" }):run()
check.contains(run:summary(), "[inner] WillStart\n", "add for seconds: 0\n",
  "[inner] DidFinish: successfully\n", "[InnerOp] 0\n")
local machine = flow.machine {
  name = "m", start = "a", flow.step("a", { run = function() flow.sleep(0) return { z = 2 } end }),
}
run = flow.wrap(flow.wrap(machine, function(_, execute) execute() end), function(ctx, execute)
  execute()
  ctx:log(ctx:get "z")
end):run()
check.contains(run:summary(), "[m] 2\n")
local DoubleOp = flow.op("DoubleOp", {
  needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker",
  run = function(ctx) ctx:set("m", 2 * ctx:get "n") end,
})
local AroundDoubleOp = flow.wrap(DoubleOp, function(_, execute) return execute() end)
run = flow.new("group"):add_grouped(AroundDoubleOp, { input = "ns", output = "ms" }):run { ns = { 1, 2 } }
check.same(run.data.ms, { 2, 4 })
check.raises(function() AroundDoubleOp:with { thread = "worker" } end,
  "a wrapper of 'DoubleOp' runs on the main thread")

-- Tests replace the op within, or all of it.
local testing = require "flow.testing"
local NamedOp = LoggedOp:with { name = "NamedOp" }
run = testing.run(NamedOp, { data = { image = "a" }, replace = { UploadOp = { url = "fake" } } })
check.equal(run.data.url, "fake")
check.contains(run:summary(), "[NamedOp] NamedOp fake fake\n")
run = testing.run(NamedOp, { data = { image = "a" }, replace = { NamedOp = { url = "faker" } } })
check.equal(run.data.url, "faker")
check.lacks(run:summary(), "[UploadOp]")

-- Wrong use.
check.raises(function() flow.wrap() end, "bad argument #1 to 'wrap' (op expected, got no value)")
check.raises(function() flow.wrap(CountOp) end, "wrap.lua:", "bad argument #2 to 'wrap' (function expected")
run = around(function(_, execute) execute(5) end)
check.contains(run.error.message, "wrap.lua:", "bad argument #1 to 'run' (table expected, got number)")
local saved
around(function(ctx, execute)
  saved = execute
  ctx:defer(function()
    check.raises(execute, "bad use of 'run' (the op around 'CountOp' has finished)")
  end)
end)
check.raises(function() saved() end, "wrap.lua:", "bad use of 'run' (the op around 'CountOp' has finished)")
run = around(function(ctx, execute)
  pcall(ctx.fail, ctx, "settled")
  check.raises(execute, "has finished")
end)
check.equal(run.error.message, "settled")

-- Ops that are wrapped very often are released one after another: the program would end by a signal.
local host = require "host"
local result = host.script [[
  local flow = require "flow"
  local released = setmetatable({}, { __mode = "k" })
  local function wrapped(n)
    local op = flow.op("AOp", function() end)
    for _ = 1, n do
      op = flow.wrap(op, function(_, run) run() end)
      released[op] = true
    end
    return op
  end
  wrapped(100000)
  -- Also those within the outermost, and in one round or two of the collector, not in one round for each.
  for _ = 1, 4 do collectgarbage() end
  print(next(released), collectgarbage "count" < 30000)
  kept = wrapped(100000)
  print(#flow.new("all"):add(kept):check(), kept:with({ name = "OtherOp", timeout = 1 }).name, kept:run().error.kind)
]]
check.equal(result.stderr, "")
check.equal(result.stdout, "nil\ttrue\n0\tOtherOp\terror\n")
check.equal(result.status, 0)

-- A table declares what differs: a need that the function sets, and an output that it makes.
local TextOp = flow.op("TextOp", { needs = { page = "string", token = "string" }, gives = { text = "string" },
  run = function(ctx) ctx:set("text", ctx:get "token" .. ":" .. ctx:get "page") end })
local WithTokenOp = flow.wrap(TextOp, { needs = { page = "string" }, gives = { size = "integer" }, run = function(ctx, run)
  ctx:set("size", #run({ token = "t" }).text)
end })
check.same(WithTokenOp.needs, { page = "string" })
check.same(WithTokenOp.gives, { size = "integer" })
check.equal(WithTokenOp.primary_input, "page")
local sized = flow.new("sized"):data { pages = { "a", "bcd" } }
  :add_grouped(WithTokenOp:with { retry = 2 }, { input = "pages", output = "sizes" })
check.same(sized:check(), {})
check.same(sized:run().data.sizes, { 3, 5 })
check.contains(flow.new("f"):add(flow.wrap(TextOp, function(_, run) run { token = "t" } end)):data { page = "a" }
  :check()[1].message, "token")
check.equal(tostring(WithTokenOp:run({}).error):find("<page>", 1, true) ~= nil, true)
check.usage(function() flow.wrap(TextOp, {}) end, "wrap", "#2", "field 'run': function expected")
check.usage(function() flow.wrap(TextOp, { run = print, need = {} }) end, "wrap", "#2", "unknown field 'need' (did you mean 'needs'?)")
check.usage(function() flow.wrap(TextOp, { run = print, gives = { x = "strng" } }) end, "wrap", "#2", "field 'gives': ")
