-- A wrong `memory` is an error of use that names the function, the argument, what was expected and what came.
local flow = require "flow"
local check = require "check"

local function refuses(memory, ...)
  local parts = { ... }
  local function body() end
  check.usage(function() flow.op("A", { thread = "worker", memory = memory, run = body }) end, "'op'", "#2",
    "field 'memory'", table.unpack(parts))
  local Op = flow.op("A", { thread = "worker", run = body })
  check.usage(function() Op:with { memory = memory } end, "'with'", "#1", "field 'memory'", table.unpack(parts))
  check.usage(function() flow.new("f"):add(Op, { memory = memory }) end, "'add'", "#2", "field 'memory'",
    table.unpack(parts))
end

local range = "a number of bytes, or a text such as \"64M\", from 64K to 16T expected, got "
for _, case in ipairs {
  { 0, "0" }, { -1, "-1" }, { 65535, "65535" }, { 1e300, "1e+300" }, { 0 / 0, "-nan" }, { -(0 / 0), "nan" }, { 1 / 0, "inf" },
  { 100000.5, "100000.5" }, { math.maxinteger, "9223372036854775807" }, { math.mininteger, "-9223372036854775808" },
  { "64X", '"64X"' }, { "64", '"64"' }, { "M", '"M"' }, { "", '""' }, { "-64M", '"-64M"' }, { "6.4M", '"6.4M"' },
  { "64MB", '"64MB"' }, { "64m", '"64m"' }, { " 64M", '" 64M"' }, { "0M", '"0M"' }, { "63K", '"63K"' },
  { "17T", '"17T"' }, { "99999999999999999999T", '"99999999999999999999T"' }, { "9999999999999T", '"9999999999999T"' },
} do
  refuses(case[1], range .. case[2])
end
refuses(true, "number or string expected, got boolean")
refuses({}, "number or string expected, got table")
refuses(print, "number or string expected, got function")

-- The smallest and the largest are accepted, in any form.
for _, memory in ipairs { 65536, 65536.0, "64K", "16T", 16 << 40 } do
  assert(flow.op("A", { thread = "worker", memory = memory, run = function() end }).memory >= 65536)
end

-- Without a worker.
local what = "field 'memory': only an op with thread = \"worker\" or \"remote\" can have it"
local MainOp = flow.op("MainOp", function() end)
check.usage(function() flow.op("A", { memory = "64M", run = function() end }) end, "'op'", "#2", what)
check.usage(function() flow.op("A", { thread = "main", memory = "64M", run = function() end }) end, "'op'", "#2", what)
check.usage(function() MainOp:with { memory = "64M" } end, "'with'", "#1", what)
check.usage(function() flow.new("f"):add(MainOp, { memory = "64M" }) end, "'add'", "#2", what)
check.usage(function() flow.ops.SleepOp(1):with { memory = "64M" } end, "'with'", what)
check.usage(function() flow.new("f"):with { memory = "64M" } end, "'with'", what)
local LimitedOp = flow.op("LimitedOp", { thread = "worker", memory = "64M", run = function() end })
check.usage(function() LimitedOp:with { thread = "main" } end, "'with'", what)
check.usage(function() flow.wrap(LimitedOp, function(_, run) run() end):with { memory = "64M" } end, "'with'",
  what)
check.usage(function() flow.resolved(1):next(function() end, { thread = "worker", memory = "64M" }) end, "'next'",
  "memory")
