-- The function `key` of a cache returns what counts instead of the inputs, on the main thread and before the op.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local text = [[
flow.keep()
local MakeOp = flow.op("MakeOp", { needs = { name = "string", at = "integer" }, gives = { made = "string" }, thread = THREAD,
  cache = { version = 1, key = function(ctx, prefix)
    flow.sleep(0.001)
    ctx:set("made", "by the key")
    return { prefix, ctx:get "name", ctx:has "extra" and ctx:get "extra" }
  end },
  run = function(ctx, prefix)
    effect("make " .. prefix .. ctx:get "name")
    ctx:set("made", prefix .. ctx:get "name" .. ctx:get "at")
  end })
local names, at = {}, tonumber(arg[1])
for i = 2, #arg do names[#names + 1] = arg[i] end
-- An op of an item reads what isn't declared.
local ReadOp = flow.op("ReadOp", { cache = { key = function() return 1 end }, run = function(ctx)
  effect "read"
  ctx:set("seen", ctx:get "at" + 0)
end })
local run = flow.new("work"):data { at = at }:add(ReadOp)
  :add_grouped(MakeOp "a-", { input = "names", output = "all", as = "name" }):run { names = names }
if not run.ok then print(run.error) else print(table.concat(run.data.all, " "), run.data.seen) end
for _, event in ipairs(run:events()) do assert(not tostring(event.message):find "by the key") end
]]

for _, thread in ipairs { "main", "worker" } do
  local script = kept.script((text:gsub("THREAD", ("%q"):format(thread))))
  local function run(...) return script:run { "--follow", arguments = { ... } } end
  local first = run("1", "x", "y")
  check.equal(first.stdout, "a-x1 a-y1\t1\n")
  script:expect_effects("read", "make a-x", "make a-y")
  -- Another input, the same key.
  local result = run("2", "y", "x", "z")
  check.equal(result.stdout, "a-y1 a-x1 a-z2\t1\n")
  script:expect_effects "make a-z"
  check.lacks(result.stderr, "isn't cached")
  check.contains(result.stderr, "[ReadOp] Kept from run r", "[MakeOp #1] Kept from run r")
  script:edit("version = 1", "version = 2")
  run("2", "x")
  script:expect_effects "make a-x"
  run("2", "x")
  script:expect_effects()
end

-- An error, a wrong result, none at all, and `false` for no cache.
local wrong = kept.script [[
flow.keep()
local results = {
  function() error "no key" end, function() end, function() return print end, function() return { print } end,
  function(ctx) ctx:fail "can't say" end, function() return false end, function() flow.sleep(0.001) error { code = 7 } end,
}
for i, key in ipairs(results) do
  for _, thread in ipairs { "main", "worker" } do
    local KeyOp = flow.op("KeyOp", { needs = { item = "integer" }, gives = { out = "integer" }, cache = { key = key },
      retry = 3, thread = thread, run = function(ctx) effect(ctx:get "item") ctx:set("out", 1) end })
    local run = flow.new("work"):add_grouped(KeyOp, { input = "list", output = "out" }):run { list = { i } }
    print(run.ok and "fine" or tostring(run.error), run.error and run.error.code)
  end
end
]]
local wanted = [[
[work/KeyOp #1] script.lua:LINE: no key	nil
[work/KeyOp #1] the function 'key' of its cache returned nil: string, number, boolean or table expected	nil
[work/KeyOp #1] the function 'key' of its cache returned function: string, number, boolean or table expected	nil
[work/KeyOp #1] the cache key of [KeyOp #1] has a value in it that can't be compared	nil
[work/KeyOp #1] can't say	nil
fine	nil
[work/KeyOp #1] script.lua:LINE: (error object is a table value: {code = 7})	7
]]
wanted = wanted:gsub("[^\n]*\n", "%0%0")
local output = wrong:run().stdout:gsub("script.lua:%d+", "script.lua:LINE"):gsub("%S*/script", "script")
check.equal(output, wanted)
wrong:expect_effects("6", "6")
wrong:run()
wrong:expect_effects("6", "6")

-- A resumed run compares the key, too, and a stop ends its computation.
local resumed = kept.script [[
local DayOp = flow.op("DayOp", { needs = { n = "integer" }, cache = { key = function() return os.getenv "DAY" end },
  run = function(ctx) effect("day " .. ctx:get "n") end })
local LongOp = flow.op("LongOp", { cache = { key = function() effect "asked" flow.sleep(100) end }, run = print })
local run = flow.new("work"):add(DayOp):add(flow.new("inner"):add(LongOp):with { timeout = 0.05 })
  :run { n = tonumber(os.getenv "N") }
print(run.error.kind)
os.exit(3)
]]
check.equal(resumed:run({ "--keep", environment = { DAY = "mo", N = "1" } }).stdout, "timeout\n")
resumed:expect_effects("day 1", "asked")
check.contains(resumed:resume { environment = { DAY = "mo", N = "2" } }, "[DayOp] Kept from run r")
resumed:expect_effects "asked"
check.contains(resumed:resume { environment = { DAY = "tu", N = "2" } }, "[DayOp] Again: its cache key differs")
resumed:expect_effects("day 2", "asked")
for _, key in ipairs { 1, "x", {} } do
  local ok, message = pcall(flow.op, "Op", { run = print, cache = { key = key } })
  assert(not ok)
  check.contains(message.message, "bad argument #2 to 'op'", "cache.key", "function expected")
end
