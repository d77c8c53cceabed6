-- Where Lua code runs below a C function, so that its coroutine can't be parked while it waits.
--
-- Returns functions that call `wait` there, by name; `predicate` takes the ctx of an op.
return function(wait)
  local places = {}
  function places.sort() table.sort({ 2, 1 }, function(a, b) wait() return a < b end) end
  function places.gsub() string.gsub("a", "a", wait) end
  function places.load() assert(load(function() wait() end)) end
  function places.require()
    package.loaded.slow_module, package.preload.slow_module = nil, wait
    require "slow_module"
  end
  function places.tostring() tostring(setmetatable({}, { __tostring = function() wait() return "" end })) end
  function places.concat() table.concat(setmetatable({}, { __index = wait, __len = function() return 1 end })) end
  function places.handler() error(select(2, xpcall(error, function() wait() return "handled" end)), 0) end
  function places.close()
    local co = coroutine.create(function()
      local _ <close> = setmetatable({}, { __close = wait })
      coroutine.yield()
    end)
    coroutine.resume(co)
    local ok, e = coroutine.close(co)
    if not ok then error(e, 0) end
  end
  function places.predicate(ctx)
    ctx:set("key", 1)
    ctx:get("key", function() wait() return true end)
  end
  function places.wrapped() coroutine.wrap(places.sort)() end
  return places
end
