-- Random flows have the order of lines, the data and the outcome that a model predicts.
-- `args: SEED` repeats a run.
local flow, check = require "flow", require "check"
local seed = tonumber(arg[1]) or os.time() ~ (tonumber(tostring({}):match("0x(%x+)"), 16) or 0)
math.randomseed(seed)
local random = math.random

local keys = { "a", "b", "c", "d" }
local function key() return keys[random(#keys)] end

-- One op of a random kind: the op, and what it does to a model { data, order, lines }. The model's
-- function returns the message of the error, or nothing.
local count = 0
local function set(model, name, value)
  local old = model.data[name]
  if value == nil then
    if old ~= nil then
      model.data[name] = nil
      for i, each in ipairs(model.order) do if each == name then table.remove(model.order, i) end end
      model.lines[#model.lines + 1] = ("[DataBucket] remove for %s"):format(name)
    end
  elseif old ~= nil then
    model.data[name] = value
    model.lines[#model.lines + 1] = ("[DataBucket] replace for %s: %s -> %s"):format(name, old, value)
  else
    model.data[name] = value
    model.order[#model.order + 1] = name
    model.lines[#model.lines + 1] = ("[DataBucket] add for %s: %s"):format(name, value)
  end
end

local function random_op()
  count = count + 1
  local name, k, v = "Random" .. count .. "Op", key(), random(100)
  local waits = random(4) == 1
  local steps = {}
  for i = 1, random(3) do steps[i] = { kind = random(8), key = key(), value = random(100) } end
  local needs, gives
  if random(6) == 1 then needs = { [k] = "integer" } end
  if random(6) == 1 then gives = { [key()] = random(2) == 1 and "integer" or "integer?" } end
  local function run(ctx)
    for i, step in ipairs(steps) do
      if waits and i == 2 then flow.sleep(random(3) * 0.0001) end
      if step.kind <= 3 then ctx:set(step.key, step.value)
      elseif step.kind == 4 then ctx:set(step.key, nil)
      elseif step.kind == 5 then ctx:log("has", step.key, ctx:has(step.key))
      elseif step.kind == 6 then ctx:set(step.key, ctx:get(step.key, "integer?") or step.value)
      elseif step.kind == 7 and step.value < 20 then ctx:get(step.key)
      elseif step.kind == 8 and step.value < 10 then ctx:fail("failed " .. step.value)
      end
    end
  end
  local function model(m)
    local function act()
      for need in pairs(needs or {}) do
        if m.data[need] == nil then
          return "can't find <" .. need .. "> in data bucket", "withInsufficientInputData: "
        end
      end
      for _, step in ipairs(steps) do
        if step.kind <= 3 then set(m, step.key, step.value)
        elseif step.kind == 4 then set(m, step.key, nil)
        elseif step.kind == 5 then
          m.lines[#m.lines + 1] = ("[%s] has %s %s"):format(name, step.key, m.data[step.key] ~= nil)
        elseif step.kind == 6 then set(m, step.key, m.data[step.key] or step.value)
        elseif step.kind == 7 and step.value < 20 then
          if m.data[step.key] == nil then
            return "can't find <" .. step.key .. "> in data bucket", "withInsufficientInputData: "
          end
        elseif step.kind == 8 and step.value < 10 then return "failed " .. step.value, "withError: "
        end
      end
      for given, type in pairs(gives or {}) do
        if m.data[given] == nil and type == "integer" then
          return "can't find <" .. given .. "> in data bucket", "withMissingOutputData: "
        end
      end
    end
    m.lines[#m.lines + 1] = ("[%s] WillStart"):format(name)
    local message, how = act()
    m.lines[#m.lines + 1] = ("[%s] DidFinish: %s"):format(name, message and how .. message or "successfully")
    return message
  end
  return flow.op(name, { needs = needs, gives = gives, run = run }), model
end

-- A flow with its model; nested ones up to a depth.
local function random_flow(name, depth)
  local blueprint, parts = flow.new(name), {}
  for i = 1, random(0, 5) do
    if depth > 0 and random(5) == 1 then
      local inner_name = name .. "." .. i
      local inner, model = random_flow(inner_name, depth - 1)
      blueprint:add(inner)
      parts[i] = function(m)
        m.lines[#m.lines + 1] = ("[%s] WillStart"):format(inner_name)
        local message, how = model(m)
        m.lines[#m.lines + 1] = ("[%s] DidFinish: %s"):format(inner_name,
          message and how .. message or "successfully")
        return message, how
      end
    else
      local op, model = random_op()
      blueprint:add(op)
      parts[i] = function(m)
        local message = model(m)
        return message, message and m.lines[#m.lines]:match("DidFinish: (%w+: )")
      end
    end
  end
  return blueprint, function(m)
    for _, part in ipairs(parts) do
      local message, how = part(m)
      if message then return message, how end
    end
  end
end

local function content(m)
  local lines = {}
  for i, name in ipairs(m.order) do lines[i] = name .. ": " .. m.data[name] .. "\n" end
  return table.concat(lines)
end

local function same(run, m, message)
  local expected = "====== Flow Summary ======\nT [DataBucket] start with:\n" .. m.start
  for _, line in ipairs(m.lines) do expected = expected .. "T " .. line .. "\n" end
  expected = expected .. "T [DataBucket] end with:\n" .. content(m)
    .. ("Flow isSuccess: %s\n======    Ending    ======\n"):format(message == nil)
  local actual = check.masked(run:summary())
  if actual ~= expected then
    error(("seed %d\nexpected:\n%s\ngot:\n%s"):format(seed, expected, actual), 0)
  end
  check.equal(run.ok, message == nil, "ok with seed " .. seed)
  if message then check.equal(run.error.message, message, "message with seed " .. seed) end
  check.same(run.data, m.data, "data with seed " .. seed)
end

for _ = 1, os.getenv "FLOWLUA_SANITIZER" and 40 or 400 do
  count = 0
  local blueprint, model = random_flow("random", 3)
  -- One blueprint three times at once: the runs don't touch each other.
  local runs, models = {}, {}
  for i = 1, 3 do
    local m = { data = {}, order = {}, lines = {} }
    local given = {}
    for _, name in ipairs(keys) do
      if random(2) == 1 then
        given[name] = random(100)
        m.data[name] = given[name]
        m.order[#m.order + 1] = name
      end
    end
    m.start = content(m)
    models[i], runs[i] = m, blueprint:start(given)
  end
  for i = 1, 3 do
    runs[i]:wait()
    same(runs[i], models[i], (model(models[i])))
  end
end
print("seed " .. seed)
