-- Calls functions and methods of `flow` at random: with arguments of the types that the annotations
-- name and with hostile ones, on live objects and settled ones, and again from within callbacks,
-- metamethods, collectors, comparators and coroutines. Reflection finds the functions; the
-- annotations say only what would make sense.
--
-- All choices come from one seed, so that the same calls are made again.
local annotations = require "annotations"
local values = require "values"

local fuzzer = {}

-- A source of random integers from 1 to n. Each callback has its own, so that when a collector calls
-- one doesn't change what the others draw.
local function source(seed)
  local state = seed * 2862933555777941757 + 3037000493
  return function(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n + 1
  end
end

local function sorted_keys(t)
  local keys = {}
  for key in next, t do if type(key) == "string" then keys[#keys + 1] = key end end
  table.sort(keys)
  return keys
end

-- The name of a type of userdata, or of an error.
local function kind_of(value)
  local metatable = debug.getmetatable(value)
  return type(metatable) == "table" and type(rawget(metatable, "__name")) == "string" and type(value) ~= "string"
    and rawget(metatable, "__name") or nil
end

-- The look of a call, without calling anything of the value.
local function text_of(value, depth)
  local kind = kind_of(value)
  if type(value) == "string" then
    return ("%q"):format(#value > 30 and value:sub(1, 12) .. "…" .. #value or value):gsub("\\\n", "\\n")
  elseif type(value) == "number" then return ("%q"):format(value)
  elseif kind then return "<" .. kind:sub(1, 20) .. ">"
  elseif type(value) == "table" then
    if debug.getmetatable(value) then return "<table with a metatable>" end
    if depth > 2 then return "{…}" end
    local parts = {}
    for i = 1, math.min(rawlen(value), 6) do parts[i] = text_of(rawget(value, i), depth + 1) end
    for _, key in ipairs(sorted_keys(value)) do
      parts[#parts + 1] = key:sub(1, 20) .. " = " .. text_of(rawget(value, key), depth + 1)
    end
    return "{ " .. table.concat(parts, ", ") .. " }"
  end
  return type(value) == "function" and "<function>" or type(value) == "userdata" and "<userdata>" or tostring(value)
end

-- The values that a worker can be given: functions without upvalues but those that travel.
local portable = {
  function() end,
  function(ctx) require "flow".sleep(0.001) end,
  function(ctx) ctx:set("b", ctx:has "a") ctx:log(ctx.name, ctx.index) end,
  function(ctx) return ctx:get("a", "integer?") end,
  function(ctx) error(setmetatable({}, { __tostring = error })) end,
  function(ctx) ctx:fail("no", { code = 3 }) end,
  function(ctx) local t <close> = require "flow".spawn(function() require "flow".sleep(9) end) end,
  function(ctx) ctx:defer(function() require "flow".sleep(0.001) error "cleanup" end) error { 1, {}, print } end,
  function(...) return require "flow".resolved(select("#", ...)) end,
  function() return require "flow".exec { "true" } end,
  function() for _ = 1, 3 do setmetatable({}, { __gc = function() require "flow".sleep(0.001) end }) end collectgarbage() end,
  function() coroutine.yield(1) end,
}
local function busy() while true do pcall(error) end end

local words = { "a", "b", "c", "list", "out", "e", "AOp", "BOp", "any", "string", "integer?", "number[]", "A|B",
  "main", "worker", "immediate", "first", "LR" }
local types = { "any", "any?", "string", "integer?", "number", "number[]", "boolean|table", "function?", "AClass" }
local programs = { { "true" }, { "false" }, { "echo", "a" }, { "cat" }, { "sleep", "0.005" }, { "sleep", "5" },
  { "sh", "-c", "kill -9 $$" }, { "no such program" } }
local events = { "__index", "__newindex", "__len", "__pairs", "__tostring", "__call", "__eq", "__lt", "__le",
  "__concat", "__close", "__gc", "__name", "__metatable", "__unm" }

-- Starts over with a seed. options: calls (how many are made), virtual (whether time is), log (a file), last
-- (a function that is called in place of the last call, wherever that is), and ctx, of the op in a worker
-- where this is.
function fuzzer.new(seed, options)
  local flow = require "flow"
  local self = { calls = 0, allowance = 0, limit = options.calls }
  local random = source(seed)
  local hostile = values.add(values.all(), flow.secret "secret", flow.secret(1), "\0", "T[", 1e10, 9.2e9, options.ctx)
  -- Long times are no use on a real clock; on a virtual one they bring it to its end.
  local long_times = options.virtual and random(4) == 1
  local pools, make, act, callback, compose = {}, nil, nil, nil, nil
  -- One of so many arguments, fields and elements of a call is any value instead of a fitting one.
  local hostility = 4

  -- Objects -----------------------------------------------------------------------------------------

  local function keep(value, result)
    local kind = kind_of(value)
    if not kind and type(value) == "table" and result and debug.getmetatable(value) == nil then
      kind = result:match "^flow%.(%a+)$"
      kind = kind and kind:lower()
    elseif not kind and type(value) == "thread" then kind = "thread"
    end
    if not kind or kind == "FILE*" then return end
    local pool = pools[kind] or {}
    pools[kind] = pool
    pool[#pool < 8 and #pool + 1 or random(8)] = value
  end

  local function held(...)
    local candidates = {}
    for _, kind in ipairs { ... } do
      for _, value in ipairs(pools[kind] or {}) do candidates[#candidates + 1] = value end
    end
    return candidates[#candidates > 0 and random(#candidates) or 1]
  end

  -- How many ops one of these executes at most: flows in flows in machines would soon be too many.
  local weights = setmetatable({}, { __mode = "k" })
  local function weight(value, depth)
    local found = type(value) == "userdata" and (weights[value] or 1) or 0
    if type(value) == "table" and depth < 4 and debug.getmetatable(value) == nil then
      for _, element in next, value do found = found + weight(element, depth + 1) end
      if rawget(value, "retry") then found = found * 3 end
    end
    return found
  end
  local function light(...)
    local object = held(...)
    return weight(object, 1) < 20 and object or nil
  end

  -- Arguments ---------------------------------------------------------------------------------------

  local classes = {
    Op = { "op", "flow", "machine" }, Task = { "task", "run" }, Run = { "run" }, Data = {}, Flow = { "flow" },
    Machine = { "machine" }, Ctx = { "ctx" }, Context = { "context" }, Error = { "flow.error" },
  }

  -- A table whose metamethods do anything: raise, yield, wait, or use the module.
  local function metatabled(random, level)
    local metatable = {}
    for _ = 1, random(4) do
      local event = events[random(#events)]
      if event == "__name" or event == "__metatable" then metatable[event] = hostile[random(hostile.n)]
      else metatable[event] = callback(random, level + 1) end
    end
    return setmetatable({ 1, a = 1 }, metatable)
  end

  -- A value of any sort.
  local function anything(random, level)
    local choice = random(12)
    if choice <= 6 then return hostile[random(hostile.n)]
    elseif choice == 7 then return metatabled(random, level)
    elseif choice == 8 then return callback(random, level + 1)
    elseif choice == 9 then return portable[random(#portable)]
    elseif choice == 10 then return { random(3), { random(3) }, a = hostile[random(hostile.n)] }
    end
    local kinds = sorted_keys(pools)
    return #kinds > 0 and held(kinds[random(#kinds)]) or nil
  end

  -- A number that makes a test neither endless nor slow. Any other value stays as it is.
  local function bounded(value, name)
    local number = math.type(value) and value or type(value) == "string" and tonumber(value)
    if not number or number ~= number or number < 0 or number == math.huge then return value end
    if name == "attempts" or name == "max_transitions" then return number > 3 and 3 or value end
    if name == "seconds" or name == "timeout" or name:find "delay" or name == "grace" then
      return number > 0.01 and not long_times and 0.003 or value
    end
    return value
  end

  local function options_table(random, level, class)
    local made = {}
    for _, field in ipairs(annotations.fields(class)) do
      local needed = field.name == "max_transitions" or field.name == "name" or field.name == "start"
        or field.name == "input" or field.name == "attempts" or field.name == "run"
      if needed and random(hostility * 5) > 1 or random(4) == 1 then
        made[field.name] = make(random, level, field.type, field.name)
      end
    end
    if made.thread == "worker" then
      made.run = made.run and portable[random(#portable)]
    end
    if class == "flow.OpOptions" and made.timeout == 0.001 and random(2) == 1 then made.run = busy end
    if class == "flow.MachineOptions" then
      made.start, made.max_transitions = "a", made.max_transitions or 2
      for i = 1, random(3) do
        made[i] = flow.step(words[i], { run = make(random, level, "flow.Op|fun()", "run"),
          flow.next(random(3) == 1 and flow.stay() or random(3) == 1 and flow.back() or flow.forward(words[i % 3 + 1])) })
      end
    elseif class == "flow.StepOptions" then
      made[1] = held "handler"
    end
    if random(hostility * 4) == 1 then made[random(2) == 1 and "unknown" or anything(random, level) or 1] = 1 end
    if random(hostility * 4) == 1 then
      setmetatable(made, { __index = callback(random, level + 1), __pairs = callback(random, level + 1) })
    end
    return made
  end

  -- A value of a type of the annotations, or not quite.
  function make(random, level, type, name)
    if random(hostility) == 1 then return bounded(anything(random, level), name) end
    if type == "flow.Type" then return random(4) == 1 and callback(random, level + 1) or types[random(#types)] end
    local list = annotations.alternatives((type:gsub("%?$", "")))
    local kind = list[random(#list)]:gsub("^%((.*)%)$", "%1"):gsub("%?$", "")
    if name == "argv" then
      return programs[random(#programs)]
    elseif name == "path" or name == "cwd" then return random(2) == 1 and "." or "missing"
    elseif name == "navigate" and random(4) > 1 then return nil
    elseif kind:find "^fun" then
      return random(4) == 1 and portable[random(#portable)] or callback(random, level + 1, kind:match "%): (.*)$")
    elseif kind:find '^"' then return kind:sub(2, -2)
    elseif kind == "string" then return words[random(#words)]
    elseif kind == "boolean" then return random(2) == 1
    elseif kind == "integer" then return bounded(random(4), name)
    elseif kind == "number" then return bounded(({ 0, 0.001, 0.002, 0.005, 1, 1e5 })[random(6)], name)
    elseif kind == "any" or kind:find "^%u$" then return random(3) == 1 and random(5) or anything(random, level)
    elseif kind:find "%[%]$" then
      local made = {}
      for i = 1, random(4) - 1 do made[i] = make(random, level, kind:sub(1, -3), name) end
      return made
    elseif kind == "flow.Data" or kind:find "^table<" then
      local value_type = kind:match "^table<%w+, (.*)>$" or "any"
      local made = {}
      for _ = 1, random(3) do made[words[random(6)]] = make(random, level, value_type, name) end
      if value_type == "any" then made.list = { 1, 2, random(3) } end
      return made
    elseif annotations.aliases[kind] then return make(random, level, annotations.aliases[kind], name)
    elseif kind:find "Options$" then return options_table(random, level, kind)
    end
    local class = kind:match "^flow%.(%a+)"
    return class and held(table.unpack(classes[class] or { class:lower() })) or anything(random, level)
  end

  -- Calls -------------------------------------------------------------------------------------------

  -- Each function of the module and each method of an object: { name, fn, kind, parameters }.
  local callable = {}
  local function add(name, fn, kind, class)
    callable[#callable + 1] = { name = name, fn = fn, kind = kind,
      parameters = annotations.functions[class .. name] or { { name = "any", type = "any" } } }
  end
  for _, name in ipairs(sorted_keys(flow)) do
    if type(flow[name]) == "function" then add(name, flow[name], nil, "flow.") end
  end
  local loaded, testing = pcall(require, "flow.testing")
  if loaded then
    for _, name in ipairs(sorted_keys(testing)) do add(name, testing[name], nil, "testing.") end
    for _, each in ipairs(callable) do
      if each.fn == testing.run then
        each.parameters = { { name = "op", type = "flow.Op" }, { name = "options", type = "flow.TestOptions" } }
      end
    end
  end
  annotations.classes["flow.TestOptions"] = annotations.classes["flow.TestOptions"]
    or { { name = "data", type = "flow.Data" }, { name = "replace", type = "table<string, flow.Op|fun()>" } }
  local bound = { SleepOp = { name = "seconds", type = "number" }, PrintOp = { name = "message", type = "string" },
    ExecOp = { name = "argv", type = "string[]" } }
  for name, op in pairs(rawget(flow, "ops") or {}) do
    if bound[name] then callable[#callable + 1] = { name = name, fn = op, parameters = { bound[name] } } end
  end

  local seen = {}
  -- The methods of an object, by the metatable of its kind: with fields `__index` is a function, which
  -- looks into the methods first.
  local function find_methods(object)
    local kind = kind_of(object)
    if not kind or seen[kind] or type(object) ~= "userdata" or kind == "FILE*" then return end
    seen[kind] = true
    local metatable = debug.getmetatable(object)
    local methods = metatable.__index
    if type(methods) == "function" then methods = select(2, debug.getupvalue(methods, 1)) end
    local class, parent = kind:sub(1, 1):upper() .. kind:sub(2) .. ":", nil
    parent = kind == "run" and "Task:" or (kind == "flow" or kind == "machine") and "Op:" or class
    for _, name in ipairs(sorted_keys(type(methods) == "table" and methods or {})) do
      add(name, methods[name], kind, annotations.functions[class .. name] and class or parent)
    end
    for _, event in ipairs { "__tostring", "__index", "__newindex", "__call", "__close", "__gc", "__pairs" } do
      if type(metatable[event]) == "function" then add(event, metatable[event], kind, class) end
    end
  end
  for i = 1, hostile.n do find_methods(hostile[i]) end
  table.sort(callable, function(a, b) return (a.kind or "") .. a.name < (b.kind or "") .. b.name end)

  local by_kind = {}
  for _, each in ipairs(callable) do
    local kind = each.kind or "flow"
    by_kind[kind] = by_kind[kind] or {}
    table.insert(by_kind[kind], each)
  end

  -- One call, of a method of `object` if there is one; its error is raised.
  local function call(random, level, object)
    if self.calls >= self.limit or self.allowance <= 0 then return end
    local list = by_kind[kind_of(object)]
    if not list then object, list = nil, callable end
    local each = list[random(#list)]
    -- Metamethods called by hand are many, and say little.
    while each.name:find "^__" and random(4) > 1 do each = list[random(#list)] end
    if each.name == "exec" and random(4) > 1 then return end
    hostility = random(3) == 1 and 3 or 50
    local arguments = { n = 0 }
    if each.kind then
      -- Now and then another object than it was made for.
      if object == nil then object = held(each.kind) end
      if random(hostility * 4) == 1 then object = anything(random, level) end
      arguments.n, arguments[1] = 1, object
    end
    for _, parameter in ipairs(each.parameters) do
      for _ = 1, parameter.name == "..." and random(4) - 1 or 1 do
        arguments.n = arguments.n + 1
        arguments[arguments.n] = make(random, level, parameter.type, parameter.name)
      end
    end
    if random(hostility) == 1 then arguments.n = math.max(0, arguments.n - 1) end
    if each.kind == "op" and each.name == "__call" or each.name == "__index" then
      for i = 2, arguments.n do arguments[i] = bounded(arguments[i], "seconds") end
    end
    -- A text that repeats itself for a megabyte is looked for at each of its bytes.
    if each.name == "secret" and type(arguments[1]) == "string" then arguments[1] = arguments[1]:sub(1, 64) end
    local total = weight(arguments, 1) * (each.name == "machine" and 4 or 1)
    if total > 200 or self.calls >= self.limit or self.allowance <= 0 then return end
    self.calls, self.allowance = self.calls + 1, self.allowance - 1
    if options.log then
      local texts = {}
      for i = 1, arguments.n do texts[i] = text_of(arguments[i], 1) end
      options.log:write(("%d %s%s(%s)\n"):format(self.calls, each.kind and each.kind .. ":" or "flow.", each.name,
        table.concat(texts, ", ")))
    end
    if self.calls == self.limit and options.last then options.last() end
    each.made = (each.made or 0) + 1
    local results = table.pack(each.fn(table.unpack(arguments, 1, arguments.n)))
    each.returned = (each.returned or 0) + 1
    if type(results[1]) == "userdata" then weights[results[1]] = total end
    for i = 1, math.min(results.n, 3) do keep(results[i], each.parameters.result) end
    return results[1]
  end

  -- A value that works, but for what its functions do: an op, a flow, a machine, or a few tasks.
  function compose(random, level)
    local function fn(result) return callback(random, level + 1, result) end
    local function op()
      if random(4) == 1 then
        return flow.op("WorkerOp", { thread = "worker", run = portable[random(#portable)], primary_input = "a",
          primary_output = "b", timeout = random(2) == 1 and 0.01 or nil })
      end
      return flow.op("AnOp", { run = fn(), timeout = random(4) == 1 and 0.002 or nil, primary_input = "a",
        primary_output = "b", needs = random(3) == 1 and { a = types[random(#types - 1)] } or nil,
        retry = random(4) == 1 and { attempts = 2, delay = 0.001 * random(2) } or nil })
    end
    local choice = rawget(flow, "op") and random(4) or 4
    if choice == 1 then keep(op())
    elseif choice == 2 then
      local made = flow.new("composed"):data { list = { 1, fn(), {} }, a = random(3), b = "b" }
      for _ = 1, random(4) do
        local part = random(8)
        if part == 1 then
          made:add_grouped(op(), { input = "list", output = random(2) == 1 and "out" or nil, max_concurrent = random(3),
            allow_failure = random(2) == 1, failures = random(2) == 1 and "failures" or nil })
        elseif part == 2 then made:add_parallel(op(), op())
        elseif part == 3 then made:add_finally(op())
        elseif part == 4 then made:case(fn "boolean"):add(op()):case("b", "b"):add(op()):otherwise():combine()
        elseif part == 5 then made:will_start(fn())
        elseif part == 6 then made:did_finish(fn())
        else made:add(random(3) == 1 and light("flow", "machine", "op") or op(), { timeout = random(3) == 1 and 0.003 or nil })
        end
      end
      weights[made] = 100
      keep(made)
    elseif choice == 3 then
      local made = flow.machine {
        name = "composed", start = "a", max_transitions = 4,
        emit = random(2) == 1 and fn '"e"' or nil, reduce = random(2) == 1 and fn "flow.Reduction" or nil,
        navigate = random(6) == 1 and fn "any" or nil, any = random(3) == 1 and "first" or nil,
        flow.any_step { flow.on("e", flow.stay()) },
        flow.step("a", { run = random(2) == 1 and fn() or op(), flow.next(flow.forward "b") }),
        flow.step("b", { run = light("flow", "op", "machine") or op(), flow.on("a", flow.back()), flow.next(flow.forward "c") }),
        flow.step("c", { run = fn() }),
      }
      weights[made] = 100
      keep(made)
    else
      local context = flow.context()
      keep(context)
      keep(context.task)
      keep(context.task:next(fn(), { thread = ({ "main", "immediate" })[random(2)] }))
      keep(flow.with_delay(0.001 * random(4), random(3)))
    end
  end

  -- Actions -----------------------------------------------------------------------------------------

  local function read_fields(random)
    local kinds = sorted_keys(pools)
    local kind = kinds[random(#kinds)]
    local object = held(kind)
    if object == nil or type(object) == "thread" then return end
    local fields = annotations.fields("flow." .. (kind == "flow.error" and "Error" or kind:sub(1, 1):upper() .. kind:sub(2)))
    for _, field in ipairs(fields) do
      local value = object[field.name]
      keep(value)
    end
    keep(tostring(object) and object == anything(random, 5))
    if random(4) == 1 then return #object end
    if random(4) == 1 then object.x = anything(random, 5) end
    if random(4) == 1 then return object .. anything(random, 5) end
    if random(4) == 1 then return object < object end
  end

  -- Does something within a function of C, a coroutine, or a variable that is closed.
  local function within(random, level)
    local fn = callback(random, level + 1)
    local choice = random(14)
    if choice == 1 then table.sort({ 3, 1, 2 }, function(a, b) fn(a, b) return a < b end)
    elseif choice == 2 then return (("abc"):gsub(".", function(c) fn(c) end))
    elseif choice == 3 then return load(function() fn() return nil end)
    elseif choice == 4 then return xpcall(error, fn, "x")
    elseif choice == 5 then return pcall(fn)
    elseif choice == 6 then return tostring(setmetatable({}, { __tostring = function() fn() return "t" end }))
    elseif choice == 7 then
      local x <close> = setmetatable({}, { __close = fn })
      if random(2) == 1 then error "closing" end
    elseif choice == 8 then
      setmetatable({}, { __gc = fn })
      collectgarbage(random(2) == 1 and "step" or "collect")
    elseif choice == 9 then
      local co = coroutine.create(function(...)
        local x <close> = setmetatable({}, { __close = fn })
        fn(coroutine.yield(fn(...)))
      end)
      keep(co)
      coroutine.resume(co)
      if random(2) == 1 then coroutine.resume(co) end
      if random(2) == 1 then coroutine.close(co) end
    elseif choice == 10 then
      local co = held "thread"
      if co then
        debug.traceback(co, coroutine.status(co))
        if random(2) == 1 then coroutine.close(co) else coroutine.resume(co, random(3)) end
      end
    elseif choice == 11 then coroutine.wrap(fn)()
    elseif choice == 12 then for x in fn do if x then break end end
    elseif choice == 13 then
      debug.sethook(function() debug.sethook() fn() end, "", 10)
      for _ = 1, 20 do end
      debug.sethook()
    else
      local task <close> = flow.spawn(fn)
    end
  end

  -- One action; its error is raised.
  function act(random, level, object)
    local choice = random(22)
    if level > 4 or self.calls >= self.limit or self.allowance <= 0 then return end
    if choice <= 11 then call(random, level, choice < 6 and object or nil)
    elseif choice > 20 then compose(random, level)
    elseif choice <= 14 then within(random, level)
    elseif choice == 15 then collectgarbage(random(3) == 1 and "collect" or "step")
    elseif choice == 16 then flow.sleep(0.0005 * (random(3) - 1))
    elseif choice == 17 then
      local task = held("run", "task")
      if task then task:cancel(anything(random, 5)) end
    elseif choice == 18 then
      local context = held "context"
      if context then context:try_set_result(anything(random, 5)) end
    else read_fields(random)
    end
  end

  -- A function that does a few things, the same ones in the same order, and then returns or raises.
  function callback(from, level, result)
    if level > 5 then return portable[1] end
    local random = source(from(1 << 30))
    return function(...)
      if self.allowance <= 0 or self.calls >= self.limit then return end
      for i = 1, math.min(select("#", ...), 3) do keep((select(i, ...))) end
      local catches = random(2) == 1
      for _ = 1, random(3) do
        if catches then pcall(act, random, level, (...)) else act(random, level, (...)) end
      end
      local choice = random(10)
      if choice == 1 then error(anything(random, level), 0)
      elseif choice == 2 then return coroutine.yield(anything(random, level))
      elseif choice == 3 then return held("task", "run")
      elseif choice <= 6 and result then return make(random, level, result:gsub(",.*", ""), "result")
      elseif choice <= 8 then return anything(random, level), anything(random, level)
      elseif choice == 9 then return ...
      end
    end
  end

  -- Sessions ----------------------------------------------------------------------------------------

  local function body(...)
    for i = 1, select("#", ...) do keep((select(i, ...))) end
    if next(pools) == nil then for _ = 1, 6 do pcall(compose, random, 1) end end
    while self.allowance > 0 and self.calls < self.limit do pcall(act, random, 1, (...)) end
  end

  -- Up to 60 calls, from the main chunk, from an op with a timeout, a spawned function, a coroutine, or an
  -- op on a virtual clock; then what is left over is cancelled, or lives on.
  function self.session()
    self.allowance = random(60)
    local where = random(7)
    if options.log then options.log:write(("session %d\n"):format(where)) end
    if where == 1 then body()
    elseif where == 2 then pcall(function() flow.spawn(body):wait(0.05) end)
    elseif where == 3 then coroutine.resume(coroutine.create(body))
    elseif where == 6 then
      local op = flow.op("WorkerSessionOp", { thread = "worker", timeout = 0.3, run = function(ctx)
        require "fuzzer".new(ctx:get "seed", { calls = ctx:get "calls", virtual = ctx:get "virtual", ctx = ctx }).work()
      end })
      pcall(op.run, op, { seed = random(1 << 30), calls = self.allowance, virtual = options.virtual })
      self.calls = self.calls + self.allowance
    elseif where == 4 and loaded then pcall(testing.run, flow.op("SessionOp", { timeout = 0.05, run = body }))
    else
      local op = flow.op("SessionOp", { timeout = 0.05, run = body })
      pcall(op.run, op)
    end
    self.allowance = 0
    if random(4) == 1 then
      for _, kind in ipairs { "run", "task" } do
        for _, task in ipairs(pools[kind] or {}) do task:cancel() end
      end
      pools = {}
      collectgarbage()
    end
  end

  -- The calls in a worker.
  function self.work()
    self.allowance = self.limit
    keep(options.ctx)
    body(options.ctx)
  end

  -- All calls; returns after the last one.
  function self.run()
    while self.calls < self.limit do
      self.session()
      self.calls = self.calls + 1
    end
    for _, kind in ipairs { "run", "task" } do
      for _, task in ipairs(pools[kind] or {}) do task:cancel() end
    end
  end

  self.callable = callable
  return self
end

return fuzzer
