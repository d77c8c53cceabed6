-- A script that fills a small memory gets "not enough memory" and can continue.
-- The process never ends by a signal. With arguments: for these sizes, in MB, and
-- with more ways to fill it.
local host, check = require "host", require "check"

local program = [[
  local flow = require "flow"
  local fills = {
    function() local t = {} for i = 1, math.huge do t[i] = { i } end end,
    function() local s = "x" while true do s = s .. s end end,
    function() local t = {} while true do t[#t + 1] = coroutine.create(print) end end,
    function() local t = {} while true do t = { t, {} } end end,
    function() local t = {} for i = 1, math.huge do t[i] = ("x"):rep(1000) .. i end end,
    function() local t = {} while true do t[#t + 1] = ("x"):rep(1 << 20) .. #t end end,
    function()
      local kept <close> = setmetatable({}, { __close = function() return { {}, {} } end })
      local t = {}
      for _ = 1, 2 do pcall(function() for i = #t + 1, math.huge do t[i] = { i } end end) end
      while true do t[#t + 1] = function() return t, kept end end
    end,
  }
  local function goes_on(error)
    -- The memory that malloc keeps is in pieces, so there may be no place for the stack of a thread.
    local text = tostring(error)
    assert(text:find "not enough memory" or text:find "no worker could be made", text)
    local run = flow.op("NextOp", function(ctx) ctx:set("x", #("x"):rep(1000)) end):run()
    assert(run.ok and run.data.x == 1000, run.error)
  end
  local first, last = ...
  for i = tonumber(first), tonumber(last) do
    local fill = fills[i]
    goes_on(flow.op("FillOp", fill):run().error)
    local ok, problem = pcall(fill)
    assert(not ok)
    goes_on(problem)
    local item = flow.op("ItemOp", { needs = { n = "integer" },
      run = function(ctx) if ctx:get "n" == 2 then fill() end end })
    goes_on(flow.new("all"):data { items = { 1, 2, 3 } }
      :add_grouped(item, flow.dispatcher { input = "items", as = "n" }):run().error)
    goes_on(flow.op("WorkOp", { thread = "worker", run = fill }):run().error)
  end
  print "done"
]]
local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write(program)
file:close()

local function run_limited(size, first, last)
  local result = host.run("sh", {
    "-c", "ulimit -c 0; ulimit -v \"$1\"; exec \"$0\" \"$2\" \"$3\" \"$4\"",
    host.binary, tostring(size * 1024), path, tostring(first), tostring(last),
  })
  local what = ("%d MB, %d to %d: status %d, %s"):format(
    size, first, last, result.status, result.stderr)
  assert(result.status < 128, what)
  return result, what
end

local sizes = { ... }
if #sizes == 0 then
  local result, what = run_limited(160, 1, 3)
  check.equal(result.stderr, "", what)
  check.equal(result.stdout, "done\n", what)
else
  -- So little that the program itself can't begin, or Swift finds nothing for a worker, is said.
  for _, size in ipairs(sizes) do
    for i = 1, 7 do
      local result, what = run_limited(tonumber(size), i, i)
      if result.status ~= 0 then
        assert(result.stderr:find "memory" or result.stderr:find "cannot allocate", what)
        print(what)
      end
    end
  end
end
os.remove(path)

-- Data that scripts keep in the engine is in Swift's memory: without that the program ends with a sentence and status 1,
-- and loses no output.
if io.popen("ldd '" .. host.binary .. "'"):read("a"):find("libswiftCore", 1, true) then
  return check.skip "a debug build has the runtime as a shared library, which ends the process by itself"
end
local result = host.run("sh", {
  "-c", "ulimit -c 0; ulimit -v 120000; exec \"$0\" -e \"$1\"", host.binary, [[
    local flow = require "flow"
    print "begun"
    flow.op("KeepOp", function(ctx)
      for i = 1, math.huge do ctx:set("key" .. i, ("x"):rep(100000) .. i) end
    end):run()
  ]],
})
check.equal(result.stderr, host.binary .. ": not enough memory for the program itself\n")
check.equal(result.stdout, "begun\n")
check.equal(result.status, 1)
