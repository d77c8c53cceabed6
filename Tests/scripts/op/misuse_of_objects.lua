-- Fields of objects can't be set, and their methods check their arguments.
local flow, check = require "flow", require "check"
local blueprint, AnOp = flow.new("misuse"), flow.op("AnOp", function() end)
local run = blueprint:run()
local dispatcher = flow.dispatcher { input = "list" }
check.usage(function() AnOp.timeout = 5 end, "'timeout'", "op")
check.usage(function() blueprint.name = "other" end, "'name'", "flow")
check.usage(function() run.ok = true end, "'ok'", "run")
check.usage(function() dispatcher.output = "x" end, "'output'", "dispatcher")
check.usage(function() AnOp[1] = 1 end, "op")
local e = flow.op("SetOp", function(ctx) ctx.url = "x" end):run().error
check.equal(e.kind, "usage")
check.contains(e, "misuse_of_objects.lua:11:", "'url'", "ctx:set(key, value)")
check.usage(function() blueprint("argument") end, "flow", "arguments")

-- Metatables are out of reach but for the debug library.
for _, object in ipairs { AnOp, blueprint, run, dispatcher } do
  check.equal(getmetatable(object), false)
  check.raises(function() setmetatable(object, {}) end, "table expected")
  local metatable = debug.getmetatable(object)
  for _, wrong in ipairs { {}, io.stdout, "text", 1, print, coroutine.create(print), blueprint } do
    for _, name in ipairs { "__tostring", "__index", "__newindex", "__call" } do
      -- Without a Lua function in between there is no place to report.
      if metatable[name] then pcall(metatable[name], wrong, wrong, wrong) end
      if metatable[name] then pcall(metatable[name]) end
    end
  end
  -- Not even there is a way to release an object before its time.
  check.equal(metatable.__gc, nil)
end

-- A value that only looks like an object, by the debug library, isn't taken for one.
local function forged(object)
  return debug.setmetatable(io.tmpfile(), debug.getmetatable(object))
end
check.contains(tostring(forged(AnOp)), "forged op")
check.usage(function() AnOp.start(forged(AnOp)) end, "start", "forged op")
check.usage(function() return forged(run).ok end, "forged run")
check.usage(function() blueprint.run(forged(blueprint)) end, "forged flow")
check.usage(function() flow.new("other"):add(forged(AnOp)) end, "#1", "forged op")
check.usage(function() flow.new("other"):add_grouped(flow.op("AOp", print), forged(dispatcher)) end, "#2",
  "forged dispatcher")
