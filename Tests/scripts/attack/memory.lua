-- Code that wants all memory gets an error under `--memory-limit`, and the script can continue.
-- clock: real: the virtual clock stands still while a program runs
local attack, check = require "attack", require "check"

-- Runs an attack, and prints its error and how many MB the process has had at most.
local PRELUDE = [[
  local flow, json = require "flow", require "flow.json"
  local function attack(body)
    local ok, problem = pcall(body)
    problem = tostring(problem)
    -- Memory that flowlua held for objects that were collected is free after the next call that makes one.
    for _ = 1, 4 do collectgarbage() pcall(flow.new, "next") end
    assert(#("x"):rep(1e6) == 1e6 and flow.op("NextOp", function() flow.sleep(0.001) end):run().ok)
    local peak = 0
    for line in io.lines "/proc/self/status" do peak = tonumber(line:match "^VmHWM:%s*(%d+)") or peak end
    print(not ok and "error" or "success", peak // 1024, problem:sub(1, 200))
  end
  local function fails(run) if run.error then error(run.error, 0) end end
]]
-- Much more than the limit, much less than what the attacks want.
local MOST = 300

local function survives(result)
  check.equal(result.status, 0)
  local outcome, peak = result.stdout:match "^(%a+)\t(%d+)"
  assert(outcome, result.stdout)
  if tonumber(peak) > MOST then error(("it had %s MB"):format(peak), 0) end
  return outcome
end
local function is_refused(result)
  check.equal(survives(result), "error")
  check.contains(result.stdout, "not enough memory")
end
local function is_refused_for(text)
  return function(result)
    check.equal(survives(result), "error")
    check.contains(result.stdout, text)
  end
end

local attacks = {
  { 19, "A string has a GB", [[return ("x"):rep(1e9)]] },
  { 20, "A string is doubled", [[local s = "x" while true do s = s .. s end]] },
  { 21, "Strings of 200 MB are joined", [[
    local t, s = {}, ("x"):rep(1e5) for i = 1, 2000 do t[i] = s end return table.concat(t)]] },
  { 22, "There are millions of strings", [[local t = {} for i = 1, 3e6 do t[i] = "a string with the number " .. i end]] },
  { 23, "The collector has been stopped", [[
    collectgarbage "stop" for i = 1, 1e7 do local x = { {}, {} } end collectgarbage "restart"]], expect = survives },
  { 24, "There are a million coroutines", [[local t = {} for i = 1, 1e6 do t[i] = coroutine.create(print) end]] },
  { 25, "A constructor has 10 MB", [[return load("return {" .. ("{1,2},"):rep(2e6) .. "}")]], expect = survives },
  { 26, "A million values are unpacked", [[return table.unpack({}, 1, 1e6)]], expect = is_refused_for "too many results" },
  { 26, "Nearly a million values are unpacked a thousand times", [[
    local t = {} for i = 1, 1000 do t[i] = { table.unpack({}, 1, 9e5) } end]] },
  { 27, "A format is wide", [[return ("%99999d"):format(1)]], expect = is_refused_for "invalid conversion" },
  { 27, "A text of many formats is wide", [[return (("%99d"):rep(1e6):format(table.unpack({}, 1, 1e6)))]], expect = survives },
  { 28, "A log is flooded", [[
    fails(flow.op("LogOp", function(ctx) for i = 1, 1e6 do ctx:log(("x"):rep(1000) .. i) end end):run())]] },
  { 29, "A bucket has a GB", [[
    fails(flow.op("SetOp", function(ctx) for i = 1, 1e6 do ctx:set("k" .. i, ("x"):rep(1e6) .. i) end end):run())]] },
  { 29, "A bucket has a million keys", [[
    fails(flow.op("SetOp", function(ctx) for i = 1, 1e9 do ctx:set("k" .. i, i) end end):run())]] },
  { 30, "A JSON text is deeply nested", [[return json.decode(("["):rep(1e6))]], expect = is_refused_for "max_depth" },
  { 30, "A JSON text is large", [[return json.decode("[" .. ("{},"):rep(5e6) .. "1]")]] },
  { 30, "A deeply nested table is printed as JSON", [[
    local t = {} for i = 1, 1e5 do t = { t } end return json.encode(t)]], expect = survives },
  { 30, "A table that contains itself is printed as JSON", [[
    local t = {} t[1] = t return json.encode(t)]], expect = is_refused_for "" },
  { 30, "A CSV text is large", [[
    local t = {} for row in require "flow.csv".rows(("a,b\n"):rep(1e7)) do t[#t + 1] = row end]], expect = survives },
  -- Beyond the list: what gives memory elsewhere.
  { "flow", "A file without an end is read by Lua", [[return io.open "/dev/zero":read "a"]] },
  { "flow", "A file without an end has one line", [[return io.open "/dev/zero":read "l"]] },
  { "flow", "A file without an end is read by an op", [[fails(flow.ops.ReadFileOp:run { path = "/dev/zero" })]],
    shell = "ulimit -v 4000000; exec \"$@\"", expect = is_refused_for "memory" },
  { "flow", "A file without an end is read by flow.fs", [[
    return require "flow.fs".read "/dev/zero"]], expect = is_refused_for "" },
  { "flow", "A program prints without an end", [[flow.exec { "cat", "/dev/zero" }:await()]], expect = is_refused_for "memory" },
  { "flow", "A line of JSON has no end", [[for _ in json.lines { path = "/dev/zero" } do end]] },
  { "flow", "A row of CSV has no end", [[for _ in require "flow.csv".rows { path = "/dev/zero" } do end]] },
  { "flow", "A script that is busy doesn't take what it has read", [[
    local tasks = {}
    for i = 1, 40 do tasks[i] = flow.spawn(flow.fs.read, "/proc/self/exe") end
    local start = os.clock()
    while os.clock() - start < 2 do end
    flow.when_all_succeed(tasks):await()]] },
  { "flow", "The input has no end", [[flow.read "a"]], shell = "exec \"$@\" </dev/zero" },
  { "flow", "A line of the input has no end", [[flow.read "l"]], shell = "exec \"$@\" </dev/zero" },
  { "flow", "A program prints a line without an end", [[
    local program = flow.exec { "cat", "/dev/zero" }
    for _ in program:lines() do end
    program:await()]], expect = is_refused_for "memory" },
  { "flow", "Tasks sleep", [[for i = 1, 1e7 do flow.spawn(flow.sleep, 1000) end]],
    -- Each of them is stopped at the end, without a collection for each.
    expect = function(result) check.equal(result.status, 1) end },
  { "flow", "Tasks that nobody holds wait for a time", [[
    fails(flow.op("DelayOp", function() for i = 1, math.huge do flow.with_delay(1000) end end):run())]] },
  { "flow", "A task has many continuations", [[
    local task = flow.context().task
    for i = 1, math.huge do task:next(print) end]] },
  { "flow", "A chain of continuations has no end", [[
    local task = flow.context().task
    for i = 1, math.huge do task = task:next(print) end]] },
  { "flow", "Many tasks wait for many tasks", [[
    local tasks = {}
    for i = 1, 1000 do tasks[i] = flow.context().task end
    for i = 1, math.huge do flow.when_all_finish(tasks) flow.when_any_finish(tasks) end]],
    -- They are pending to the end, so that there is no memory to continue with.
    expect = function(result) check.contains(result.stdout .. result.stderr, "not enough memory") end },
  { "flow", "A flow has many steps", [[
    local f, op = flow.new "f", flow.op("NoOp", print)
    while true do f:add(op) end]] },
  { "flow", "A flow has many steps of all kinds", [[
    local f, op = flow.new "f", flow.op("NoOp", print)
    while true do
      f:add(op, { timeout = 5 }):add_parallel(op, op):add_grouped(op, { input = "a", as = "b" }):add_finally(op)
    end]] },
  { "flow", "A flow has many cases", [[
    local f, op = flow.new "f", flow.op("NoOp", print)
    while true do f:case("a", "b"):add(op):case("c", "d"):combine() end]] },
  { "flow", "Flows have many steps each", [[
    local f, op, copies = flow.new "f", flow.op("NoOp", print), {}
    for i = 1, 1000 do f:add(op) end
    for i = 1, math.huge do copies[i] = f:copy():add(op) end]] },
  { "flow", "There are many ops and machines", [[
    local list = {}
    for i = 1, math.huge do
      list[#list + 1] = flow.op("A" .. i .. "Op", print)
      list[#list + 1] = flow.machine { name = "m" .. i, start = "a", flow.step("a", { run = print }) }
    end]] },
  { "flow", "Workers fill their states at a time", [[
    local runs = {}
    for i = 1, 8 do
      runs[i] = flow.op("FillOp", { thread = "worker", run = function()
        local t = {} for j = 1, 1e9 do t[j] = ("x"):rep(1e5) .. j end
      end }):start()
    end
    for i = 1, 8 do runs[i]:wait() assert(runs[i].error) end
    fails(runs[8])]] },
  { "flow", "Patterns capture large texts", [[
    return (("x"):rep(1e6):gsub(".", ("y"):rep(1e6)))]] },
  { "flow", "A buffer of a file has a GB", [[
    local files = {}
    for i = 1, 100 do files[i] = io.tmpfile() files[i]:setvbuf("full", 1e9) files[i]:write(("x"):rep(1e6)) end]],
    expect = survives },
}
for _, each in ipairs(attacks) do each[3] = ("%s attack(function() %s end)"):format(PRELUDE, each[3]) end
attack.all(attacks, { "--memory-limit", "64M", "--time-limit", "60", "--grace", "1" }, is_refused, 3)

-- Whatever is left when the limit is reached, all that was collected is given back.
local host = require "host"
for limit = 56, 72, 2 do
  local result = host.run(host.binary, { "--memory-limit", limit .. "M", "-e", PRELUDE .. [[
    attack(function()
      local f, op = flow.new "f", flow.op("NoOp", print)
      while true do f:case("a", "b"):add(op):case("c", "d"):combine() end
    end)]] })
  check.match(result.stdout, "^error\t")
end
