-- ctx.error in a worker is the same as on the main thread.
-- In a final step or a cleanup it is the error of the flow or op, and nil after success.
-- clock: real: the virtual clock stands still while a worker is busy
-- expect-stderr: f failed: [f/StepOp] own failure
-- expect-status: 1
local flow, check = require "flow", require "check"
local FailOp = flow.op("FailOp", function(ctx) ctx:fail("bad", { code = 7 }) end)
local GoodOp = flow.op("GoodOp", function() end)

-- A step that shows what it sees of ctx.error, and what its cleanup does; "own" is a failure of its own.
local function step(thread, options)
  options.thread = thread
  options.needs, options.gives = { n = "any" }, { saw = "string" }
  options.run = function(ctx)
    local function text() return ctx.error and ("%s %s %s"):format(ctx.error.kind, ctx.error.message, ctx.error.code) or "nil" end
    ctx:defer(function() ctx:log("cleanup: " .. text()) end)
    local saw = text()
    ctx:log("body: " .. saw)
    ctx:set("saw", saw)
    if ctx:get "n" == "own" then ctx:fail("own failure") end
    if ctx.attempt < 2 and ctx:get "n" == "again" then ctx:fail("again") end
  end
  return flow.op("StepOp", options)
end

-- The lines of a run, without times, sorted, as items of workers end in any order.
local function lines(run)
  local found = {}
  for line in run:summary():gmatch "[^\n]+" do
    local text = line:match "%[StepOp.*%] (%a+: .*)"
    if text and not text:find "^DidFinish" then found[#found + 1] = text end
  end
  table.sort(found)
  return found
end

local groups = { input = "list", output = "saws", allow_failure = true }
local finals = {
  ["an op"] = function(f, Op) f:add_finally(Op) end,
  ["a group"] = function(f, Op) f:add_finally(flow.new("g"):add_grouped(Op, groups)) end,
  ["a group of one at a time"] = function(f, Op)
    f:add_finally(flow.new("g"):add_grouped(Op, { input = "list", max_concurrent = 1, allow_failure = true }))
  end,
  ["parallel ops"] = function(f, Op) f:add_finally(flow.new("p"):add_parallel(Op, Op)) end,
}
local begins = {
  ["a failure"] = function(f) return f:add(FailOp):run() end,
  ["a success"] = function(f) return f:add(GoodOp):run() end,
  ["a timeout"] = function(f)
    return f:add(flow.op("SlowOp", function() flow.sleep(100) end), { timeout = 0.001 }):run()
  end,
  ["a cancellation"] = function(f)
    local run = f:add(flow.op("SlowOp", function() flow.sleep(100) end)):start()
    run:cancel("enough")
    run:wait()
    return run
  end,
}
local seen = {}
for begin_name, begin in pairs(begins) do
  for final_name, add in pairs(finals) do
    -- Of parallel ops a failure stops the others: who is first differs.
    for _, n in ipairs(final_name == "parallel ops" and { "fine", "again" } or { "fine", "own", "again" }) do
      local both = {}
      for _, thread in ipairs { "main", "worker" } do
        local f = flow.new("f"):data { n = n, list = { n, "fine" } }
        add(f, step(thread, { retry = n == "again" and 2 or nil }))
        local run = begin(f)
        local _ = run.error
        both[#both + 1] = lines(run)
      end
      local what = ("%s after %s (%s)"):format(final_name, begin_name, n)
      assert(#both[1] >= 2, what)
      check.same(both[2], both[1], what)
      for _, line in ipairs(both[2]) do seen[line] = true end
    end
  end
end
-- Equal lines on both could be an equal fault.
for _, line in ipairs {
  "body: nil", "body: error bad 7", "body: timeout timed out after 0.001s nil",
  "body: cancelled cancelled: enough nil", "cleanup: nil", "cleanup: error own failure nil",
} do
  if not seen[line] then
    local all = {}
    for each in pairs(seen) do all[#all + 1] = each end
    table.sort(all)
    error(("nobody saw %s but\n%s"):format(line, table.concat(all, "\n")))
  end
end

-- A cleanup of an op that isn't in any flow, and one that is stopped.
local function cleanup_of(options, stop)
  options.thread = "worker"
  local body = options.run
  options.run = function(ctx)
    ctx:defer(function() ctx:log("cleanup: " .. (ctx.error and ctx.error.kind or "nil")) end)
    body(ctx)
  end
  local run = flow.op("AloneOp", options):start()
  if stop then
    while not run:summary():find("ready", 1, true) do flow.sleep(0.001) end
    run:cancel()
  end
  run:wait()
  local _ = run.error
  return run:summary():match "cleanup: (%a+)"
end
check.equal(cleanup_of { run = function() end }, "nil")
check.equal(cleanup_of { run = function() error "x" end }, "error")
check.equal(cleanup_of { timeout = 0.02, run = function() while true do end end }, "timeout")
local function wait(ctx)
  ctx:log "ready"
  flow.sleep(100)
end
check.equal(cleanup_of({ run = wait }, true), "cancelled")
