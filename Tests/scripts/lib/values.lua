-- The values that functions and options are given to see what they do with them. Lists have holes:
-- each carries its length as `n`.
local values = {}

local function add(list, ...)
  for i = 1, select("#", ...) do
    list.n = list.n + 1
    list[list.n] = (select(i, ...))
  end
  return list
end
values.add = add

-- Numbers at the borders of integers, floats and times; texts that look like numbers or aren't text;
-- one value of each other type of Lua.
function values.plain()
  local list = table.pack(nil, true, false, 0, -0.0, -1, 1, 1.5, 0 / 0, 1 / 0, -1 / 0, 2 ^ 53, 2 ^ 63, -2 ^ 63,
    2 ^ 31, 2 ^ 32, 1e18 // 1 | 0, 1e300, 1e-300, -1e300, math.maxinteger, math.mininteger,
    "10", "0x10", " 5 ", "", "a\0b", "\xff\xfe", ("x"):rep(1e6), {}, { 1, 2 }, { n = math.huge },
    table.pack, coroutine.create(print), coroutine.running(), io.stdout, _G)
  local here = 1
  -- A pointer, as light userdata.
  return add(list, debug.upvalueid(function() return here end, 1))
end

-- Tables whose metamethods raise what they are called with.
function values.raising()
  return setmetatable({}, { __index = error, __len = error, __pairs = error, __tostring = error })
end

-- The objects that `flow` makes, one of each kind, secrets left out: they become plain values. A worker has
-- tasks only.
function values.objects()
  local flow = require "flow"
  if not rawget(flow, "op") then return table.pack(flow, flow.context(), flow.resolved(1)) end
  local function nothing() end
  local ValueOp = flow.op("ValueOp", nothing)
  local ctx
  flow.op("CtxOp", function(finished) ctx = finished end):run()
  return table.pack(flow, ValueOp, flow.new("value"), flow.new("value"):run(), ctx, flow.ops,
    flow.dispatcher { input = "list" }, flow.context(), flow.resolved(1),
    flow.machine { name = "v", start = "a", flow.step("a", { run = nothing }) },
    flow.step("a", { run = nothing }), flow.any_step {}, flow.on("e", flow.stay()), flow.next(flow.stay()),
    flow.forward "a", flow.back(), flow.stay(), flow.continue(1), flow.finish(), flow.retry(),
    { kind = "forward" }, { kind = "back", step = 3 }, { kind = {} })
end

-- All of these.
function values.all()
  local list = add(values.plain(), values.raising())
  return add(list, table.unpack(values.objects()))
end

-- At most 40 bytes about a value, whatever it does to `tostring`.
function values.text(value)
  local ok, text = pcall(tostring, value)
  return ok and text:sub(1, 40) or type(value)
end

return values
