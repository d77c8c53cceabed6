-- Executes a kept script in as many processes as it needs, each of which may be ended at any moment, and proves after
-- each that nothing was lost and nothing was repeated.
--
-- The script calls `note(ctx)` in each op, which appends the op's name and key to the file `effects`, and at its end it
-- writes its results to the file `data`.
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local recovery = {}

-- Comes before the text of the script.
local prelude = [[
local function note(ctx, name) effect((name or ctx.name) .. " " .. ctx.key) end
]]

-- A new script. `binary` executes it; the test's program if it is nil.
function recovery.script(text, binary)
  local script = kept.script(prelude .. text)
  script.program = binary
  return script
end

-- A program that FLOWLUA_CRASH_AT crashes: this one, or the debug build beside it; nil without one.
function recovery.program_with_points()
  for _, program in ipairs { host.binary, os.getenv "FLOWLUA_DEBUG_BINARY" or ".build/tests/debug/flowlua" } do
    if flow.fs.exists(program) then
      local script = recovery.script([[flow.op("AOp", function() end):run()]], program)
      local result = script:run { "--keep", environment = { FLOWLUA_CRASH_AT = 1 } }
      flow.fs.remove(script.folder, { recursive = true })
      if result.status == 137 then return program end
    end
  end
end

local function flowlua(script, ...)
  local result = flow.exec({ kept.binary(host.binary), ... }, { cwd = script.folder, check = false }):await()
  return result.status, result.stdout, result.stderr
end

-- The store's record of the run: its state, nil without a run, and how many ops of each name have finished, of those
-- whose line has a text after that.
function recovery.stored(script, having)
  local status, list, problem = flowlua(script, "--runs")
  if status ~= 0 then
    -- The process ended before it had made the store.
    assert(problem:find "there is no store", problem)
    return nil, {}
  end
  local runs = {}
  for id, state in list:gmatch "%f[^\n](r%w+) +(%l+)" do
    if state ~= "waits" then runs[#runs + 1] = { id = id, state = state } end
  end
  assert(#runs <= 1, list)
  if #runs == 0 then return nil, {} end
  local _, verdict, damage = flowlua(script, "--verify")
  check.equal(verdict, "verified 1 run\n", damage)
  local shown, finished = select(2, flowlua(script, "--show", runs[1].id)), {}
  for name, rest in shown:gmatch "%f[^\n]%[([^]\n]+)%] finished in([^\n]*)" do
    if not having or rest:find(having, 1, true) then finished[name] = (finished[name] or 0) + 1 end
  end
  return runs[1].state, finished
end

-- The outcome of an op that is executed only once is known from its effect; returns the words for the next process.
local function settlement(result, keys)
  local name = result.stderr:match "([^]/[]+)%] had started in run r%w+, and may have had its effect"
  return name and { "--settle", name .. "=" .. (keys[name] and "done" or "again") } or {}
end

-- Executes the script until it has finished.
--   expected(name)   how often an op of that name is executed in the whole run; nil for one that is undone, or fails
--   once             the name of an op that is executed only once, whatever happens
--   names            ops that must have been executed, which are those with an expected number
--   limits           by a part of a name, how many such ops may be in doubt at once; others: one
--   process(life, words)   executes the script with these words in one process, the first of which is life 1
--   data             what the script writes
-- Returns the number of processes and the number of effects that were repeated.
function recovery.prove(script, options)
  local state, finished, keys, words, repeated = nil, {}, {}, {}, 0
  local life = 0
  repeat
    life = life + 1
    assert(life < 1000, "it doesn't finish")
    local result = options.process(life, { "--resume", table.unpack(words) })
    local before, made = finished, {}
    for _, line in ipairs(script:effects()) do
      local name, key = line:match "^(.+) (%w+)$"
      assert(name, line)
      made[name] = (made[name] or 0) + 1
      keys[name] = keys[name] or { count = 0 }
      if keys[name][key] then
        repeated = repeated + 1
        assert(not options.once or options.once ~= name, name .. " had its effect twice")
      else
        keys[name].count, keys[name][key] = keys[name].count + 1, true
      end
    end
    state, finished = recovery.stored(script)

    local where = ("process %d, which ended with status %s: %s"):format(life, result.status, result.stderr)
    -- A committed op isn't executed again.
    for name, count in pairs(made) do
      local times = options.expected(name)
      if times and count + (before[name] or 0) > times then
        error(("[%s] was executed %d times though %d of %d had finished, in %s"):format(
          name, count, before[name] or 0, times, where))
      end
    end
    -- It isn't lost either.
    for name, count in pairs(before) do
      if options.expected(name) and (finished[name] or 0) < count then
        error(("[%s] had finished, and isn't in the store after %s"):format(name, where))
      end
    end
    -- Nothing is committed that wasn't executed, and what may be executed again is what was executed at that time.
    local doubts = {}
    for name, count in pairs(finished) do
      if options.expected(name) and (keys[name] or { count = 0 }).count < count then
        error(("[%s] has finished without its effect, in %s"):format(name, where))
      end
    end
    for name, known in pairs(keys) do
      local kind = name:match "^%w+"
      if options.expected(name) then
        doubts[kind] = (doubts[kind] or 0) + known.count - (finished[name] or 0)
      end
    end
    for kind, count in pairs(doubts) do
      local limit = options.limits[kind] or 1
      if count > limit then
        error(("%d of [%s] are in doubt, and %d may be, after %s"):format(count, kind, limit, where))
      end
    end
    words = state ~= "finished" and settlement(result, keys) or {}
  until state == "finished"

  for name, known in pairs(keys) do
    local times = options.expected(name)
    if times then check.equal(known.count, times, "keys of " .. name) end
  end
  for _, name in ipairs(options.names) do assert(keys[name], name .. " was never executed") end
  check.equal(flow.fs.read(script.folder .. "/data"), options.data)
  return life, repeated, keys
end

return recovery
