-- Reading pipes that nobody writes to keeps no other function of flow.fs waiting.
-- clock: real: the virtual clock stands still while a pipe is read
local check = require "check"
local flow = require "flow"
local fs = flow.fs

local dir = fs.temp_dir()
local COUNT = 12
local function pipe(i) return ("%s/pipe%d"):format(dir, i) end
local paths = { "mkfifo" }
for i = 1, COUNT do paths[i + 1] = pipe(i) end
flow.exec(paths):await()
fs.write(dir .. "/file", "there")

local function threads()
  return #fs.list("/proc/self/task")
end
local function descriptors()
  return #fs.list("/proc/self/fd")
end
local function become(expected, read)
  local limit = flow.now() + 10
  while read() > expected and flow.now() < limit do flow.sleep(0.001) end
  return read() <= expected
end

-- The usual number of threads.
local begin = {}
for i = 1, 20 do begin[i] = flow.spawn(function() return fs.hash(dir .. "/file") end) end
flow.when_all_succeed(begin):await()
-- A thread of another kind may come later.
local thread_count, descriptor_count = threads() + 1, descriptors()

-- Each function that reads, and more of them than there are threads.
local readers = {
  function(path) return fs.read(path) end,
  function(path) return fs.hash(path) end,
  function(path)
    fs.copy(path, path .. ".copy")
    return fs.read(path .. ".copy")
  end,
  function(path)
    local rows = {}
    for row in flow.csv.rows({ path = path }, { header = false }) do rows[#rows + 1] = row[1] end
    return table.concat(rows, "|")
  end,
}
local function start()
  local tasks = {}
  for i = 1, COUNT do tasks[i] = flow.spawn(readers[i % 4 + 1], pipe(i)) end
  return tasks
end

local tasks = start()
flow.sleep(0.02)
local other = flow.spawn(function() return fs.read(dir .. "/file") end)
check.equal(other:wait(10), true, "another function waits for the pipes")
check.equal(other:await(), "there")
for i, task in ipairs(tasks) do
  check.equal(task.state, "pending")
  -- Opened for reading already, so that a write has a reader.
  fs.write(pipe(i), i .. "\nend\n", { append = true })
end
for i, task in ipairs(tasks) do
  local text = i .. "\nend\n"
  local expected = { text, fs.hash { bytes = text }, text, i .. "|end" }
  check.equal(task:await(), expected[i % 4 + 1])
  if i % 4 == 2 then fs.remove(pipe(i) .. ".copy") end
end
check.equal(become(thread_count, threads), true, "the threads in between have ended")
check.equal(become(descriptor_count, descriptors), true, "descriptors are closed")

-- A cancel ends all of them.
tasks = start()
-- A pipe without a reader takes nothing more once it is full.
local full = flow.spawn(function()
  local reader = flow.exec({ "sh", "-c", "exec sleep 1000 <" .. pipe(COUNT) })
  flow.sleep(0.02)
  tasks[COUNT]:cancel()
  local ok, problem = pcall(fs.write, pipe(COUNT), ("x"):rep(1 << 20), { append = true })
  reader:cancel()
  error(ok and "written" or problem, 0)
end)
flow.sleep(0.05)
check.equal(fs.read(dir .. "/file"), "there")
full:cancel()
for _, task in ipairs(tasks) do task:cancel() end
for _, task in ipairs(tasks) do
  check.equal(task:wait(10), true)
  check.equal(task.state, "cancelled")
end
full:wait(10)
check.equal(full.state, "cancelled")
check.equal(become(thread_count, threads), true, "the threads of cancelled functions have ended")
check.equal(become(descriptor_count, descriptors), true, "descriptors are closed after a cancel")
