-- One allocation that fails ends the program with a sentence and status 1, or is an error of the script: never a signal.
-- clock: real: the virtual clock stands still while a program runs
-- With an argument: each N-th allocation fails, instead of some.
local flow, fs, check, host, confined =
  require "flow", require "flow.fs", require "check", require "host", require "confined"
-- A debug build has the runtime as a shared library, which doesn't look.
if io.popen("ldd '" .. host.binary .. "'"):read("a"):find("libswiftCore", 1, true) then
  return check.skip "a debug build has the runtime as a shared library"
end

local folder <close> = setmetatable({ path = fs.temp_dir() }, {
  __close = function(it) fs.remove(it.path, { recursive = true }) end,
})
local library, script, counted = folder.path .. "/failing.so", folder.path .. "/all.lua", folder.path .. "/count"
if not confined.compile("failing_malloc.c", library, "-shared", "-fPIC") then return end
fs.write(script, [[
  local flow, fs, json, csv = require "flow", require "flow.fs", require "flow.json", require "flow.csv"
  local place = ...
  -- An error is the script's matter.
  local function try(fn) local ok, problem = pcall(fn) if not ok then io.stderr:write(tostring(problem), "\n") end end
  local NextOp = flow.op("NextOp", { needs = { n = "integer" }, gives = { m = "integer" }, run = function(ctx)
    flow.sleep(0.001)
    ctx:set("m", ctx:get "n" + 1)
    ctx:log "a line"
  end })
  try(function()
    local item = flow.op("ItemOp", { needs = { n = "integer" }, retry = { attempts = 2 }, timeout = 5,
      run = function() flow.sleep(0.001) end })
    local all = flow.new("all"):data { items = { 1, 2, 3 }, n = 1, way = "left" }
      :add_grouped(item, flow.dispatcher { input = "items", as = "n", max_concurrent = 2 })
      :add_parallel(NextOp, flow.op("OtherOp", function(ctx) ctx:set("list", { 1, { x = "y" } }) end))
      :case("way", "left"):add(NextOp):otherwise():add(item):combine()
      :add_finally(flow.op("LastOp", function(ctx) ctx:defer(function() end) end))
    local run = all:run()
    return run:summary(), all:dot(), all:mermaid()
  end)
  try(function() flow.exec({ "echo", "hello" }):await() end)
  try(function() flow.op("WorkOp", { thread = "worker", run = function(ctx) ctx:set("text", ("x"):rep(100)) end }):run() end)
  try(function()
    fs.write(place .. "/a.csv", csv.encode { { "a", "b" }, { "1", "2" } })
    for _ in csv.rows(place .. "/a.csv") do end
    json.write(place .. "/a.json", json.decode '{ "list": [1, 2.5, { "key": null }] }')
    return fs.list(place), fs.read(place .. "/a.json")
  end)
  try(function() flow.wrap(NextOp, function(_, run) return run() end):run { n = 1 } end)
  try(function() flow.when_all_finish({ flow.spawn(function() return 3 end), flow.with_delay(0.001, 4) }):await() end)
  print "done"
]])

-- Returns the result of the script in which this allocation fails; 0 for none.
local function run(failing)
  return host.run(host.binary, { "--summary", script, folder.path }, {
    environment = { LD_PRELOAD = library, FAILING_ALLOCATION = tostring(failing), ALLOCATION_COUNT = counted },
  })
end

local result = run(0)
check.equal(result.stdout, "done\n", result.stderr)
local count = assert(tonumber(fs.read(counted)))
-- Those before main are many; of the others, some.
local failing, step = 1, tonumber(arg[1])
while failing <= count do
  result = run(failing)
  assert(result.status == 0 or result.status == 1, ("allocation %d of %d: status %d, %s"):format(
    failing, count, result.status, result.stderr))
  -- Some name what lacks instead, as a thread.
  assert(result.status == 0 or result.stderr:find("flowlua: ", 1, true), result.stderr)
  failing = failing + (step or failing < 100 and 9 or count // 50)
end
