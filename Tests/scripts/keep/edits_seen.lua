-- Each edit of what an op refers to is seen in the digest of its code, or the op can't be kept and says why.
local check, flow = require "check", require "flow"
local testing = require "flow.testing"

local function op_of(value) return flow.op("RefersOp", { run = function() return value end }) end

-- Makes an op that reads its environment; an edit of the environment is undone after the digest.
local function op_by(text) return flow.op("TextOp", { run = assert(load("return function() " .. text .. " end"))() }) end

-- The digest of what `make` returns, which may also return a function that undoes its effects.
local function digest(make, value)
  local made, undo = make(value)
  local is_op = tostring(made):find "^op: TextOp"
  local result = testing.code_digest(is_op and made or op_of(made))
  if undo then undo() end
  return result, is_op
end

-- An edit from `a` to `b` is seen; without an edit the digest is the same.
local count = 0
local function seen(name, a, b, make)
  count = count + 1
  local before, is_op = digest(make, a)
  check.equal((digest(make, a)), before, name .. ": the same again")
  check.equal(digest(make, b) ~= before, true, name .. ": seen")
  if is_op then return end
  -- Also within a table, and as the key of one.
  local function within(value)
    local made, undo = make(value)
    return { { made }, [made] = 1 }, undo
  end
  before = digest(within, a)
  check.equal((digest(within, a)), before, name .. ": the same in a table")
  check.equal(digest(within, b) ~= before, true, name .. ": seen in a table")
end

local function body() end
local function op(options)
  options.run = body
  return flow.op("InnerOp", options)
end

-- Clients.
local client = flow.http.client
seen("base", "http://a", "http://b", function(v) return client { base = v } end)
seen("headers", "a", "b", function(v) return client { headers = { x = v, y = "c" } } end)
seen("a secret header", "a", "b", function(v) return client { headers = { x = flow.secret(v) } } end)
seen("auth", "a", "b", function(v) return client { auth = v } end)
seen("password", "a", "b", function(v) return client { auth = { user = "u", password = v } } end)
seen("max_connections", 1, 2, function(v) return client { max_connections = v } end)
seen("rate of a client", 1, 2, function(v) return client { rate = { 10, per = v } } end)
seen("timeout of a client", 1, 2, function(v) return client { timeout = v } end)
seen("cookies", true, false, function(v) return client { cookies = v } end)
seen("a function of a client", "http://a", "http://b", function(v) return client({ base = v }).get end)
for _, field in ipairs { "status", "body", "headers" } do
  local a, b = 200, 201
  if field == "body" then a, b = "a", "b" elseif field == "headers" then a, b = { x = "a" }, { x = "b" } end
  seen(field .. " of a response", a, b, function(v)
    local response
    testing.run(flow.op("GetOp", function() response = flow.http.get("http://a/"):await() end), {
      http = function() return { [field] = v } end })
    return response
  end)
end
seen("get and post", "get", "post", function(v) return client({ base = "http://a" })[v] end)

-- Flows.
local function work() return flow.new "work" end
seen("data", 1, 2, function(v) return work():data { a = v } end)
seen("a table of data", 1, 2, function(v) return work():data { a = { v }, b = 1 } end)
seen("a secret of data", "a", "b", function(v) return work():data { a = flow.secret(v) } end)
seen("a function of data", 1, 2, function(v) return work():data { a = function() return v end } end)
seen("data of a nested flow", 1, 2, function(v) return work():add(work():data { a = v }) end)
seen("name of a flow", "a", "b", function(v) return flow.new(v) end)
seen("needs of a flow", "string", "integer", function(v) return work():needs { a = v } end)
seen("retry of a step", 1, 2, function(v) return work():add(op {}, { retry = v }) end)
seen("timeout of a step", 1, 2, function(v) return work():add(op {}, { timeout = v }) end)
seen("grace of a final step", 1, 2, function(v) return work():add_finally(op {}, { grace = v }) end)
seen("undo of a step", 1, 2, function(v) return work():add(op {}, { undo = function() return v end }) end)
seen("a case", "a", "b", function(v) return work():case("key", v):add(op {}):combine() end)
seen("will_start", 1, 2, function(v) return work():will_start(function() return v end) end)
for name, values in pairs {
  max_concurrent = { 1, 2 }, allow_empty = { true, false }, allow_failure = { true, false }, absent = { 1, 2 },
  rate = { { 1 }, { 1, per = 2 } }, hold_slot = { true, false }, label = { "a", "b" }, failures = { "a", "b" },
} do
  local function options(v) return { input = "list", output = "out", as = "x", collect = "y", [name] = v } end
  seen(name .. " of a group", values[1], values[2], function(v) return work():add_grouped(op {}, options(v)) end)
  seen(name .. " of a dispatcher", values[1], values[2], function(v) return flow.dispatcher(options(v)) end)
end
seen("input of a dispatcher", "a", "b", function(v) return flow.dispatcher { input = v } end)
seen("a function for labels", 1, 2, function(v)
  return flow.dispatcher { input = "a", label = function() return v end }
end)

-- Ops.
seen("needs", "string", "integer", function(v) return op { needs = { a = v } } end)
seen("a tested need", 1, 2, function(v) return op { needs = { a = function() return v end } } end)
seen("gives", "a", "b", function(v) return op { gives = { [v] = "string" } } end)
seen("primary_input", "a", "b", function(v)
  return op { needs = { a = "any", b = "any" }, primary_input = v }
end)
for name, values in pairs {
  retry = { 1, 2 }, timeout = { 1, 2 }, grace = { 1, 2 }, effect = { "once", "repeat" }, cache = { true, false },
} do
  seen(name, values[1], values[2], function(v) return op { [name] = v } end)
end
seen("delay of retries", 1, 2, function(v) return op { retry = { attempts = 2, delay = v } } end)
seen("when of retries", 1, 2, function(v)
  return op { retry = { attempts = 2, when = function() return v end } }
end)
seen("version of a cache", 1, 2, function(v) return op { cache = { version = v } } end)
seen("key of a cache", 1, 2, function(v) return op { cache = { key = function() return v end } } end)
seen("undo", 1, 2, function(v) return op { undo = function() return v end } end)
seen("bound arguments", 1, 2, function(v) return op {} (v) end)
seen("with", 1, 2, function(v) return op {}:with { timeout = v } end)
seen("a wrapper", 1, 2, function(v) return flow.wrap(op {}, function() return v end) end)
seen("needs of a wrapped op", "string", "integer", function(v) return flow.wrap(op { needs = { a = v } }, body) end)
seen("memory", "64M", "65M", function(v) return op { thread = "worker", memory = v } end)

-- Machines and their parts.
local function machine(options, step)
  options.name, options.start, options[1] = "machine", "one", flow.step("one", { run = step or body })
  return flow.machine(options)
end
seen("max_transitions", 10, 20, function(v) return machine { max_transitions = v } end)
seen("timeout of a machine", 10, 20, function(v) return machine { timeout = v } end)
seen("needs of a step", "string", "any", function(v) return machine({}, op { needs = { a = v } }) end)
seen("a step", 1, 2, function(v) return flow.step("one", { run = function() return v end }) end)
seen("a final step", true, false, function(v) return flow.step("one", { run = body, final = v }) end)
seen("a handler of a step", "a", "b", function(v) return flow.step("one", { run = body, flow.next(flow.forward(v)) }) end)
seen("a handler", "a", "b", function(v) return flow.on(v, flow.stay()) end)
seen("any_step", "a", "b", function(v) return flow.any_step { flow.on("x", flow.back(v)) } end)

-- Results of functions of steps.
seen("finish", 1, 2, function(v) return flow.finish(v) end)
seen("continue", 1, 2, function(v) return flow.continue { v } end)
seen("finish and continue", "finish", "continue", function(v) return flow[v](1) end)

-- Tasks.
seen("a resolved task", 1, 2, function(v) return flow.resolved(v) end)
seen("a table of a task", 1, 2, function(v) return flow.resolved { v } end)
local function observed(task)
  check.equal(task.completed and task.state ~= "pending", true)
  return task
end
seen("a failed task", "a", "b", function(v) return observed(flow.failed(v)) end)
seen("resolved and failed", "resolved", "failed", function(v) return observed(flow[v] "a") end)
seen("a spawned task", 1, 2, function(v) return flow.spawn(function() return v end) end)
seen("a task of tasks", 1, 2, function(v) return flow.when_all_finish { flow.resolved(v) } end)
seen("a settled context", 1, 2, function(v)
  local context = flow.context()
  context:set_result(v)
  return context
end)
seen("data of a run", 1, 2, function(v) return work():data { a = v }:run() end)
seen("much data of a run", 1, 2, function(v)
  local data = {}
  for i = 1, 100 do data["key" .. i] = v end
  return work():data(data):run().data
end)

-- Tables.
seen("a metatable", 1, 2, function(v) return setmetatable({ a = 1 }, { __index = { b = v } }) end)
seen("a metatable's client", "a", "b", function(v)
  return setmetatable({}, { __index = client { base = "http://" .. v } })
end)

-- Modules, libraries and globals; `change` returns what undoes it.
local function set(table, key, value)
  local old = rawget(table, key)
  rawset(table, key, value)
  return function() rawset(table, key, old) end
end
local function environment(name, a, b, text, change)
  seen(name, a, b, function(v)
    local undo = change(v)
    return op_by(text), undo
  end)
end
environment("package.loaded", 1, 2, "return require 'own'.limit", function(v)
  return set(package.loaded, "own", { limit = v })
end)
environment("a loaded value", 1, 2, "return require 'own'", function(v) return set(package.loaded, "own", v) end)
environment("package.preload", 1, 2, "return require 'own'", function(v)
  return set(package.preload, "own", function() return v end)
end)
environment("a method of strings", 1, 2, "return ('x'):shout()", function(v)
  return set(string, "shout", function() return v end)
end)
environment("what a method of strings calls", 1, 2, "return ('x'):shout()", function(v)
  local undo, undo_too = set(string, "shout", function(s) return s:cry() end), set(string, "cry", function() return v end)
  return function() undo() undo_too() end
end)
environment("a replaced function", 1, 2, "return ('x'):rep(2)", function(v)
  return set(string, "rep", function() return v end)
end)
environment("a field of math", 1, 2, "return math.limit", function(v) return set(math, "limit", v) end)
environment("a table in a library", 1, 2, "return table.settings.limit", function(v)
  return set(table, "settings", { limit = v })
end)
environment("a field of flow", "a", "b", "return require 'flow'.api.get", function(v)
  return set(flow, "api", client { base = "http://" .. v })
end)
environment("arithmetic of strings", 1, 2, "return 'a' % 1", function(v)
  return set(getmetatable "", "__mod", function() return v end)
end)
environment("metatable of _G", 1, 2, "return LIMIT", function(v)
  setmetatable(_G, { __index = { LIMIT = v } })
  return function() setmetatable(_G, nil) end
end)
environment("metatable of numbers", 1, 2, "return (1).x", function(v)
  debug.setmetatable(1, { __index = { x = v } })
  return function() debug.setmetatable(1, nil) end
end)
seen("a global by a metatable", 1, 2, function(v)
  local undo = set(_G, "LIMIT", v)
  local chunk = assert(load("return function() return LIMIT end", "=x", "t", setmetatable({}, { __index = _G })))
  return chunk(), undo
end)

-- Additions that an op doesn't use don't count.
local plain = testing.code_digest(op_by "return ('x'):upper(), math.pi, table.concat")
local undo = { set(string, "shout", body), set(math, "limit", 3), set(table, "settings", {}), set(flow, "api", body) }
check.equal(testing.code_digest(op_by "return ('x'):upper(), math.pi, table.concat"), plain)
for _, each in ipairs(undo) do each() end

-- Without a known content the op can't be kept.
local function refused(reason, value)
  count = count + 1
  for _, held in ipairs { value, { { value } }, { [value] = 1 } } do
    check.contains(select(2, pcall(testing.code_digest, op_of(held))), "it refers to " .. reason)
  end
end
local context = flow.context()
refused("'task", context.task)
refused("'task", context)
refused("'waits', which hasn't ended", flow.new("waits"):add(flow.op("WaitOp", function() context.task:await() end)):start())
refused("'task", flow.spawn(function() context.task:await() end))
context:set_result(1)
local path = flow.fs.temp_dir() .. "/lines"
flow.fs.write(path, "1\n2\n")
refused("an iterator of json.lines", (require "flow.json".lines { path = path }))
refused("an iterator of csv.rows", (require "flow.csv".rows { path = path }))
refused("the lines of a program", (flow.exec({ "true" }):lines()))
refused("a watch of files", (flow.fs.watch(path)))
check.equal(count > 100, true, "the number of edits")

-- Many ops, flows and closures within each other need no stack.
local deep = flow.op("DeepOp", body)
for i = 1, 20000 do
  local inner = deep
  deep = i % 3 == 0 and flow.wrap(inner, body) or flow.op("DeepOp", function() return inner end)
end
check.equal(#testing.code_digest(deep), 64)
deep = work()
for _ = 1, 20000 do deep = work():add(deep):data { a = { deep } } end
check.equal(#testing.code_digest(op_of(deep)), 64)
local nested = body
for _ = 1, 200000 do
  local inner = nested
  nested = function() return inner() end
end
check.equal(#testing.code_digest(op_of(nested)), 64)
check.equal(#testing.code_digest(op_of { [nested] = nested }), 64)
