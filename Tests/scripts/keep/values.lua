-- Values that can't be kept have their op executed again, after one warning that says why; all others come back.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local function op(name, make, key)
  return flow.op(name, function(ctx)
    effect(name)
    ctx:set(key or name, make())
  end)
end
flow.new("values"):add(op("NanOp", function() return 0 / 0 end))
  :add(op("InfinityOp", function() return { -math.huge, math.mininteger, -0.0 } end))
  :add(op("CycleOp", function()
    local t = {}
    t.t = t
    return t
  end))
  :add(op("LargeOp", function() return ("\0x"):rep(1 << 23) end))
  :add(op("EmptyOp", function() return "" end, ""))
  :add(op("FunctionOp", function() return print end))
  :add(op("TaskOp", function() return { a = { flow.spawn(function() end) } } end))
  :add(op("FileOp", function() return io.stdout end))
  :add(op("NameOp", function() return 5 end, "\0result"))
  :add(flow.op("EndOp", function(ctx)
    local nan, numbers, cycle = ctx:get "NanOp", ctx:get "InfinityOp", ctx:get "CycleOp"
    assert(nan ~= nan and numbers[1] == -math.huge and numbers[2] == math.mininteger and 1 / numbers[3] < 0)
    assert(cycle.t == cycle and ctx:get "LargeOp" == ("\0x"):rep(1 << 23) and ctx:get "" == "")
    assert(ctx:get "FunctionOp" == print and ctx:get "FileOp" == io.stdout and ctx:get "\0result" == 5)
    if os.getenv "FAIL" then ctx:fail "no" end
  end)):run()
]]

local executed = { "FunctionOp", "TaskOp", "FileOp", "NameOp" }
check.equal(script:run({ "--keep", environment = { FAIL = 1 } }).status, 1)
script:expect_effects("NanOp", "InfinityOp", "CycleOp", "LargeOp", "EmptyOp", table.unpack(executed))
local result = script:run { "--resume" }
check.equal(result.status, 0, result.stderr)
script:expect_effects(table.unpack(executed))
for name, why in pairs {
  FunctionOp = "<FunctionOp>, which it has set, can't be kept: it is a function",
  TaskOp = "<TaskOp>, which it has set, can't be kept: its field '.a[1]' is a userdata (task)",
  FileOp = "<FileOp>, which it has set, can't be kept: it is a userdata",
  NameOp = "result>, which it has set, begins with a NUL byte, as the store's own names do",
} do
  check.contains(result.stderr, "[" .. name .. "] isn't kept, so a resumed run executes it again: ", why)
end
