-- Every parameter and every option, given each value of a list, works or raises a usage error.
-- The message begins with the place of the call.
local flow, check = require "flow", require "check"
local here = debug.getinfo(1, "S").short_src

local hostile = require "values"
local values, text_of = hostile.all(), hostile.text

-- A sanitizer is slow: there each third value has to do.
local step = os.getenv "FLOWLUA_SANITIZER" and 3 or 1
local calls = 0
-- Calls fn, from Lua, with each value.
local function each(name, fn)
  for i = 1, values.n, step do
    local value = values[i]
    calls = calls + 1
    local ok, raised = pcall(function()
      local result = fn(value)
      return result
    end)
    if not ok then
      local what = ("%s with %s: %s"):format(name, text_of(value), text_of(raised))
      assert(type(raised) == "table" and raised.kind == "usage", what)
      assert(raised.message:find("^[^\n]-" .. here:gsub("%p", "%%%0") .. ":%d+: "), what)
      assert(#raised.message < 1500, what)
    end
  end
end

local AnOp = flow.op("AnOp", { needs = { x = "any?" }, gives = { y = "any?" }, run = function() end })
local settled = AnOp:run()
local program = flow.exec { "true" }
program:wait()

-- Plain functions.
each("op 1", function(v) flow.op(v, print) end)
each("op 2", function(v) flow.op("AOp", v) end)
each("op 1, 2", function(v) flow.op(v, v) end)
each("new", function(v) flow.new(v) end)
each("dispatcher", function(v) flow.dispatcher(v) end)
each("now", function(v) flow.now(v) end)
local testing = require "flow.testing"
each("testing.run 1", function(v) testing.run(v) end)
each("testing.run 2", function(v) testing.run(AnOp, v) end)
each("testing.run data", function(v) testing.run(AnOp, { data = v }) end)
each("testing.run data x", function(v) testing.run(AnOp, { data = { x = v } }) end)
each("testing.run replace", function(v) testing.run(AnOp, { replace = v }) end)
each("testing.run replace AnOp", function(v) testing.run(AnOp, { replace = { AnOp = v } }) end)
each("testing.run replace name", function(v) if v ~= nil and v == v then testing.run(AnOp, { replace = { [v] = print } }) end end)
each("testing.run exec", function(v) testing.run(AnOp, { exec = v }) end)
each("testing.run http", function(v) testing.run(AnOp, { http = v }) end)
local ProgramOp = flow.op("ProgramOp", function() flow.exec({ "program" }):await() end)
each("replaced program", function(v) local _ = testing.run(ProgramOp, { exec = function() return v end }).error end)
for _, field in ipairs { "status", "stdout", "stderr" } do
  each("replaced " .. field, function(v)
    local _ = testing.run(ProgramOp, { exec = function() return { [field] = v } end }).error
  end)
end
local RequestOp = flow.op("RequestOp", function() flow.http("http://localhost/"):await() end)
each("replaced request", function(v) local _ = testing.run(RequestOp, { http = function() return v end }).error end)
each("replaced URL", function(v)
  if v ~= nil and v == v then testing.run(AnOp, { http = { [v] = "" } }) end
end)
for _, field in ipairs { "status", "headers", "body", "json", "delay", "phase" } do
  each("replaced " .. field, function(v)
    local _ = testing.run(RequestOp, { http = function() return { [field] = v } end }).error
  end)
end
local function settle(task)
  task:wait()
  return task.error
end
each("dispatcher rate", function(v) flow.dispatcher { input = "list", rate = v } end)
each("dispatcher rate 1", function(v) flow.dispatcher { input = "list", rate = { v } } end)
each("dispatcher rate per", function(v) flow.dispatcher { input = "list", rate = { 1, per = v } } end)
each("exec", function(v) settle(flow.exec(v)) end)
each("exec word", function(v) settle(flow.exec({ "true", v })) end)
each("exec 2", function(v) settle(flow.exec({ "true" }, v)) end)
for _, field in ipairs { "stdin", "cwd", "env", "timeout", "check", "capture", "unknown" } do
  each("exec " .. field, function(v)
    -- A folder that isn't there, or no time at all, is a failure, not misuse.
    settle(flow.exec({ "true" }, { [field] = v }))
  end)
end
each("exec variable", function(v) settle(flow.exec({ "true" }, { env = { NAME = v } })) end)
each("exec name", function(v)
  if v == v and v ~= nil then settle(flow.exec({ "true" }, { env = { [v] = "" } })) end
end)
each("sleep", function(v)
  -- In an op of its own, as a value may be a long time.
  local run = flow.op("SleepOp", function() flow.sleep(v) end):start()
  if run.error then error(run.error) end
end)

-- Fields of options.
for _, field in ipairs { "doc", "needs", "gives", "primary_input", "primary_output", "run", "thread", "retry",
  "timeout", "unknown" } do
  each("op " .. field, function(v)
    local fields = { run = function() end }
    fields[field] = v
    flow.op("AOp", fields)
  end)
end
each("op's key", function(v) if v == v and v ~= nil then flow.op("AOp", { run = print, [v] = 1 }) end end)
for _, field in ipairs { "needs", "gives" } do
  each(field .. " type", function(v) flow.op("AOp", { run = print, [field] = { key = v } }) end)
  each(field .. " key", function(v)
    if v == v and v ~= nil then flow.op("AOp", { run = print, [field] = { [v] = "any" } }) end
  end)
end
for _, field in ipairs { "input", "output", "max_concurrent", "allow_failure", "allow_empty", "failures", "as",
  "collect", "unknown" } do
  each("dispatcher " .. field, function(v)
    local fields = { input = "list" }
    fields[field] = v
    flow.dispatcher(fields)
  end)
  each("add_grouped " .. field, function(v)
    local fields = { input = "list", as = "x", collect = "y" }
    fields[field] = v
    local run = flow.new("group"):data { list = { 1, 2, 3 } }:add_grouped(AnOp, fields):run()
    -- The list's name, and whether outputs come, is data, not misuse.
    assert(run.state ~= "pending")
  end)
end
for _, field in ipairs { "time", "durations", "unknown" } do
  each("summary " .. field, function(v) settled:summary { [field] = v } end)
end

-- Methods: each parameter, and self.
for _, name in ipairs { "data", "needs", "add", "add_grouped", "will_start", "did_finish", "copy",
  "check", "dot", "mermaid" } do
  each(name, function(v) local blueprint = flow.new("a") blueprint[name](blueprint, v) end)
  each(name .. " 2", function(v)
    local blueprint = flow.new("a")
    blueprint[name](blueprint, name:find("^add") and AnOp or print, v)
  end)
  each(name .. " self", function(v) flow.new("a")[name](v, AnOp) end)
end
each("data key", function(v) if v == v and v ~= nil then flow.new("a"):data { [v] = 1 } end end)
each("data value", function(v) flow.new("a"):data { key = v }:run():summary() end)
each("needs key", function(v) if v == v and v ~= nil then flow.new("a"):needs { [v] = "any?" } end end)
each("needs type", function(v) flow.new("a"):needs { key = v } end)
each("check data", function(v)
  local found = flow.new("a"):needs { key = "string" }:case("key", "a"):check { key = v }
  check.equal(#found, type(v) == "string" and 0 or v == nil and 1 or 2)
end)
for _, startable in ipairs { AnOp, flow.new("a") } do
  each("start", function(v) startable:start(v) end)
  each("run", function(v) startable:run(v) end)
  each("run data", function(v) local r = startable:run { x = v } r:summary() r:events() assert(rawequal(r.data.x, v) or v ~= v) end)
  each("start self", function(v) startable.start(v) end)
  each("call", function(v) local bound = AnOp(v, v, nil) end)
end
for _, name in ipairs { "await", "cancel", "wait", "summary", "events", "dot" } do
  each("run:" .. name, function(v) settled[name](settled, v) end)
  each("run." .. name, function(v) settled[name](v) end)
end
for _, name in ipairs { "await", "cancel", "wait" } do
  each("task:" .. name, function(v) program[name](program, v) end)
  each("task." .. name, function(v) program[name](v) end)
end
-- A pending run: the wait ends at its timeout, or is refused.
each("wait", function(v)
  if type(v) == "number" and v > 0.001 then return end
  local run = flow.op("ShortOp", function() flow.sleep(0.002) end):start()
  run:wait(v)
end)
for _, object in ipairs { flow, AnOp, flow.new("a"), settled, program } do
  each("field", function(v) return object[v] end)
end
for _, object in ipairs { AnOp, flow.new("a"), settled, program, flow.dispatcher { input = "list" } } do
  each("set field", function(v) if v == v and v ~= nil then object[v] = v end end)
  each("by hand", function(v)
    local metatable = debug.getmetatable(object)
    for _, event in ipairs { "__tostring", "__index", "__newindex", "__call", "__close" } do
      if type(metatable[event]) == "function" then
        local ok, raised = pcall(function() local r = metatable[event](v, v, v) return r end)
        assert(ok or type(raised) == "table" and raised.kind == "usage", event)
      end
    end
  end)
end

-- ctx, in ops that then fail with the error.
local function in_op(name, fn)
  each("ctx:" .. name, function(v)
    local run = flow.op("CtxOp", function(ctx)
      local result = fn(ctx, v)
      return nil
    end):run { present = 1 }
    if not run.ok and run.error.kind == "usage" then error(run.error) end
    assert(run.ok or run.error.kind ~= "error" or name:find("^fail") or name:find("tostring"), tostring(run.error))
  end)
end
in_op("get", function(ctx, v) ctx:get(v) end)
in_op("get 2", function(ctx, v) ctx:get("present", v) end)
in_op("get 2", function(ctx, v) ctx:get("absent", v) end)
in_op("set", function(ctx, v) ctx:set(v, 1) end)
in_op("set 2", function(ctx, v) ctx:set("key", v) assert(rawequal(ctx.run.data.key, v) or v ~= v) end)
in_op("has", function(ctx, v) ctx:has(v) end)
in_op("log tostring", function(ctx, v) ctx:log(v, v) end)
in_op("fail", function(ctx, v) ctx:fail(v) end)
in_op("fail 2", function(ctx, v) ctx:fail("message", v) end)
in_op("fail fields", function(ctx, v) ctx:fail("message", { code = v }) end)
in_op("fail key", function(ctx, v) if v == v and v ~= nil then ctx:fail("message", { [v] = 1 }) end end)
in_op("field", function(ctx, v) return ctx[v] end)
for _, name in ipairs { "get", "set", "has", "log", "fail" } do
  in_op(name .. " self", function(ctx, v) ctx[name](v, "key", 1) end)
end
in_op("return", function(_, v) return v end)
each("bound argument", function(v)
  local got
  assert(flow.op("BoundOp", function(_, a, b, c) got = { a, b, c, n = 3 } end)(v, nil, v):run().ok)
  assert((rawequal(got[1], v) and rawequal(got[3], v) or v ~= v) and got[2] == nil)
end)
each("raised value", function(v)
  local run = flow.op("RaiseOp", function() error(v, 0) end):run()
  assert(not run.ok)
  assert(rawequal(run.error.cause, v) or v ~= v or rawequal(run.error, v))
  run:summary()
end)
-- The last, because tables have strings of which secrets hide all from then on.
each("secret", function(v) flow.secret(v) end)
assert(calls > 4000 // step, calls)
-- Without waiting for the ops that sleep for ages.
os.exit(0)
