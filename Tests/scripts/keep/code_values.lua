-- Any value may be an upvalue of an op: what has content counts by it, everything else by its type.
local code = require "code"

local function with(value, before)
  return (before or "") .. "\nlocal value = " .. value .. "\n"
    .. 'op = flow.op("ValueOp", function(ctx) ctx:log(tostring(value)) end)'
end

local function stable(a, before)
  code.same(with(a, before), "\n" .. with(a, before), a)
end

local function counts(a, b, before)
  stable(a, before)
  code.differs(with(a, before), with(b, before), a .. " and " .. b)
end

counts("1", "1.0")
counts("0.0", "-0.0")
counts("0/0", "1/0")
counts('"a"', '"b"')
counts("true", "false")
counts("nil", "false")
counts('flow.secret "token"', 'flow.secret "other"')
counts('flow.secret "token"', '"token"')
counts("{ [1.5] = 1, [true] = 2, x = 3 }", "{ [1.5] = 1, [false] = 2, x = 3 }")
counts("setmetatable({}, { __index = { a = 1 } })", "setmetatable({}, { __index = { a = 2 } })")
counts("print", "error")
counts("flow.op('InnerOp', function() return 1 end)", "flow.op('InnerOp', function() return 2 end)")
counts("flow.op('InnerOp', function() end)", "flow.op('OtherOp', function() end)")
counts("flow.op('InnerOp', function() end) 'a'", "flow.op('InnerOp', function() end) 'b'")
counts("flow.ops.PrintOp 'a'", "flow.ops.PrintOp 'b'")

-- Only their types are known.
counts("io.stdout", "io.stderr")
stable("assert(io.open('/dev/null'))")
stable("coroutine.create(function() end)")
stable("coroutine.wrap(function() end)")
stable("flow.spawn(function() end)")
counts("coroutine.create(print)", "io.tmpfile()")

-- Cycles.
counts("t", "{}", "local t = { x = {} }; t.t = t; t.x.t = t; setmetatable(t, t)")
stable("f", "local f; function f() return f end")
stable("object", "local object = {}; function object.method() return object end")
stable("inner", "local inner; inner = flow.op('SelfOp', function() return inner end)")
counts("first", "flow.op('FirstOp', function() end)", [[
  local first, second
  first = flow.op("FirstOp", function() return second end)
  second = flow.op("SecondOp", function() return first end)
]])

-- A chain of metatables and a deep table need no stack.
stable("deep", "local deep = {}; for _ = 1, 1e5 do deep = { deep } end")
stable("chain", "local chain = {}; for _ = 1, 1e5 do chain = setmetatable({}, chain) end")

-- Keys whose order differs from process to process.
local keys = [[
  local keys = {}
  for i = 1, 40 do
    keys[function() return i end] = "f" .. i
    keys[{ i }] = i
    keys[flow.op("Op" .. i, function() return i end)] = i
    keys["s" .. i] = i
  end
  keys[keys] = keys
]]
counts("keys", "{}", keys)
code.differs(with("keys", keys), with("keys", (keys:gsub("return i end%] = \"f\"", 'return i end] = "g"'))), "a value")
code.differs(with("keys", keys), with("keys", (keys:gsub("{ i }", "{ -i }"))), "a key")

-- Variables that functions share aren't copies of them.
code.differs(
  with("{ function() return a end, function() return a end }", "local a = 1"),
  with("{ function() return a end, function() return b end }", "local a, b = 1, 1"), "shared")
