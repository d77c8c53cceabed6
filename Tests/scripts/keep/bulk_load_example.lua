-- A load of 200,000 rows that is killed again and again has each row once, and repeats only what was being executed.
-- clock: real: the example is another program
local check, flow, host = require "check", require "flow", require "host"

-- Starts the example, with words of `env` before it; the program, a task.
local example = "examples/bulk_load.lua"
local function start(folder, ...)
  local words = { "env", ... }
  for _, word in ipairs { host.binary, "--follow", example, folder } do words[#words + 1] = word end
  return flow.exec(words, { check = false })
end

-- The report when nothing was killed.
local folder = flow.fs.temp_dir()
local plain = start(folder):await()
check.equal(plain.status, 0, plain.stderr)
check.contains(plain.stdout, "50 chunks, loaded by 1 processes\n")
local sums = plain.stdout:match "^(.-)50 chunks"

-- Notes what the store has as finished after a process; none of what it had before may have been executed again. The log may
-- say that a chunk has finished before the store has it.
local finished, executed = {}, 0
local function note(log, folder)
  local is_kept = {}
  for name, text in log:gmatch "%[(LoadOp #%d+)%] (%u[^\n]*)" do
    if text:find "^Kept from run" then
      is_kept[name] = true
    elseif text:find "^Again" then
      assert(not finished[name], name .. " was executed again")
      executed = executed + 1
    elseif text == "DidFinish: successfully" and not is_kept[name] then
      assert(not finished[name], name .. " was executed again")
    end
  end
  local function store(...)
    return flow.exec({ host.binary, "--store", folder .. "/.flowlua", ... }, { check = false }):await().stdout
  end
  local id
  for each in store("--runs"):gmatch "\n(r%w+)" do id = each end
  if not id then return end
  for name in store("--show", id):gmatch "(LoadOp #%d+)[^]\n]*%] finished in" do finished[name] = true end
end

-- Killed at the worst moment: after the database has a chunk, before the store knows.
folder = flow.fs.temp_dir()
for _, chunk in ipairs { 20, 50 } do
  local result = start(folder, "LOAD_KILL=" .. chunk):await()
  check.equal(result.signal or result.status, 9, result.stderr)
  note(result.stderr, folder)
end
local last = start(folder):await()
check.equal(last.status, 0, last.stderr)
note(last.stderr, folder)
-- Its start needn't be in the store yet on a busy machine.
check.contains(last.stderr, "[LoadOp #50] WillStart")
check.lacks(last.stderr, "[LoadOp #50] Kept")
check.equal(last.stdout:match "^(.-)50 chunks", sums)
assert(executed <= 2 * 4, executed .. " chunks were executed again")

-- Killed at any moment.
folder = flow.fs.temp_dir()
finished, executed = {}, 0
local seed = os.time()
math.randomseed(seed)
for _ = 1, 3 do
  local program = start(folder)
  flow.sleep(math.random() * 0.6)
  flow.exec({ "kill", "-KILL", tostring(program.pid) }, { check = false }):await()
  local result = program:await()
  -- It had ended before: the next process begins a new run.
  if result.status == 0 then finished = {} else note(result.stderr, folder) end
end
last = start(folder):await()
check.equal(last.status, 0, "seed " .. seed .. ": " .. last.stderr)
check.equal(last.stdout:match "^(.-)50 chunks", sums, "seed " .. seed)

-- Killed, and edited because its rows were wrong: all of them are those of the new code.
folder = flow.fs.temp_dir()
local text = flow.fs.read(example)
example = folder .. "/bulk_load.lua"
flow.fs.write(example, text)
check.equal(start(folder, "LOAD_KILL=30"):await().status ~= 0, true)
local edited, count = text:gsub(":upper%(%)", ":lower()")
check.equal(count, 1)
flow.fs.write(example, edited)
last = start(folder):await()
check.equal(last.status, 0, last.stderr)
check.contains(last.stderr, "[DivideOp] Kept from run", "[LoadOp #1] Again: its code changed")
check.equal(last.stdout:match "^(.-)50 chunks", sums:lower():gsub("eur", "EUR"))
