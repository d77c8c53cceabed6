-- Recursion without an end is an error of the script: the process doesn't end by a signal.
-- clock: real: the virtual clock stands still while a program runs
local attack, check = require "attack", require "check"

local function survives(result)
  check.equal(result.status, 0)
  check.contains(result.stdout, "survived\n")
end

local attacks = {
  { 32, "gsub calls gsub", [[local function f(x) return (x:gsub(".", f)) end fails(f, "x")]] },
  { 32, "sort calls sort", [[local function f() table.sort({ 1, 2, 3 }, f) end fails(f)]] },
  { 33, "pcall calls pcall", [[local function f() return pcall(pcall, f) end f()]] },
  { 33, "pcall calls a function that calls pcall", [[local function f() local ok, e = pcall(f) return ok, e end f()]] },
  { 33, "The handler of xpcall fails", [[local function f() error "x" end fails(error, xpcall(f, f))]] },
  { 34, "Parentheses are nested", [[assert(not load("return " .. ("("):rep(1e5) .. "1" .. (")"):rep(1e5)))]] },
  { 34, "Tables are nested", [[assert(not load("return " .. ("{"):rep(1e5) .. ("}"):rep(1e5)))]] },
  { 34, "Blocks are nested", [[assert(not load(("do "):rep(1e5) .. ("end "):rep(1e5)))]] },
  { 34, "Functions are nested", [[assert(not load(("return function() "):rep(1e5) .. ("end "):rep(1e5)))]] },
  { 34, "Operators are nested", [[
    assert(not load("return " .. ("- "):rep(1e5) .. "1"))
    assert(not load("return " .. ("1^"):rep(1e5) .. "1"))
    assert(not load("return " .. ("x.."):rep(1e5) .. "x"))]] },
  { 34, "Assignments have many targets", [[assert(not load(("a,"):rep(1e5) .. "a = 1"))]] },
  { 35, "Coroutines close coroutines", [[
    local co
    for i = 1, 20000 do
      local inner = co
      co = coroutine.create(function()
        local x <close> = setmetatable({}, { __close = function() if inner then coroutine.close(inner) end end })
        coroutine.yield()
      end)
      coroutine.resume(co)
    end
    coroutine.close(co)]] },
  { 35, "Coroutines resume coroutines", [[local function f() coroutine.wrap(f)() end fails(f)]] },
  { 36, "A chain of __index is a cycle", [[
    local a, b = {}, {} setmetatable(a, { __index = b }) setmetatable(b, { __index = a })
    fails(function() return a.x end) fails(rawlen, a.x)]], expect = function(result) check.equal(result.status, 1) end },
  { 36, "A chain of __index is long", [[
    local t = {} for i = 1, 1e5 do t = setmetatable({}, { __index = t }) end fails(function() return t.x end)]] },
  { 36, "An __index indexes", [[
    local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end
    fails(function() return t.x end)]] },
  { 36, "Metamethods use themselves", [[
    local mt = {}
    local x, y = setmetatable({}, mt), setmetatable({}, mt)
    mt.__concat = function(a, b) return a .. b end
    mt.__lt, mt.__eq = function(a, b) return a < b end, function(a, b) return a == b end
    mt.__len, mt.__unm, mt.__newindex = function(a) return #a end, function(a) return -a end, x
    fails(function() return x .. x end) fails(function() return x < x end) fails(function() return x == y end)
    fails(function() return #x end) fails(function() return -x end) fails(function() x.a = 1 end)]] },
  { 37, "A __tostring calls tostring", [[
    local t = setmetatable({}, {}) getmetatable(t).__tostring = tostring fails(tostring, t) fails(print, t)]] },
  { 37, "A __tostring that recurses is logged, set and raised", [[
    local t = setmetatable({}, {}) getmetatable(t).__tostring = function(x) return tostring(x) end
    print(flow.op("LogOp", function(ctx) ctx:log(t) end):run().error)
    print(flow.op("SetOp", function(ctx) ctx:set("x", t) end):run():summary())
    print(flow.op("RaiseOp", function(ctx) error(t) end):run().error)]] },
  { 37, "A __tostring that recurses is the error of the script", [[
    print "survived"
    error(setmetatable({}, { __tostring = tostring }))]], expect = function(result)
      check.equal(result.status, 1)
    end },
  { 37, "A deeply nested table is set, raised and sent to a worker", [[
    local t = {} for i = 1, 1e6 do t = { t } end
    print(#flow.op("SetOp", function(ctx) ctx:set("x", t) end):run():summary())
    print(flow.op("RaiseOp", function(ctx) error(t) end):run().error)
    print(flow.op("WorkOp", { thread = "worker", needs = { x = "table" }, run = function() end }):run { x = t }.error)]] },
  { 37, "A table that contains itself is set, raised and sent to a worker", [[
    local t = {} t.t = t
    print(#flow.op("SetOp", function(ctx) ctx:set("x", t) end):run():summary())
    print(flow.op("RaiseOp", function(ctx) error(t) end):run().error)
    print(flow.op("WorkOp", { thread = "worker", needs = { x = "table" }, run = function() end }):run { x = t }.error)]] },
  -- Beyond the list: what flow nests.
  { "flow", "An op runs itself", [[
    local op op = flow.op("AnOp", function() op:run() end) op:run()]], expect = function(result)
      -- The failures of the inner runs were observed by nobody.
      check.contains(result.stdout, "survived\n")
      assert(result.status == 0 or result.status == 1)
    end },
  { "flow", "A task starts a task", [[local function f() flow.spawn(f) end pcall(f)]], expect = function(result)
      assert(result.status == 0 or result.status == 1)
    end },
  { "flow", "Flows are nested", [[
    local op = flow.op("AnOp", function() end) for i = 1, 1e4 do op = flow.new("a flow"):add(op) end print(op:run().error)]] },
  { "flow", "Tasks follow tasks", [[
    local t = flow.spawn(function() end) for i = 1, 1e5 do t = t:next(function() end) end t:await()]] },
  { "flow", "Errors have causes", [[
    local e for i = 1, 1e5 do
      local run = flow.op("FailOp", function() error(e or "first") end):run() e = run.error
    end print(#tostring(e) > 0)]] },
  { "flow", "Patterns are nested", [[
    fails(string.find, ("a"):rep(1e6), ("a?"):rep(1e6)) fails(string.find, ("a"):rep(1e6), ("(a"):rep(100))]] },
}
local PRELUDE = [[
  local flow = require "flow"
  local function fails(...) assert(not pcall(...)) end
]]
for _, each in ipairs(attacks) do each[3] = ("%s %s print 'survived'"):format(PRELUDE, each[3]) end
attack.all(attacks, { "--time-limit", "60", "--grace", "1" }, survives, 3)
