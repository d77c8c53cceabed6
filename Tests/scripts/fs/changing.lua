-- A tree that changes while it is listed or removed isn't an error.
-- clock: real: other work at the same time
local check = require "check"
local flow = require "flow"
local fs = flow.fs

local dir = fs.temp_dir()
local function fill()
  for i = 1, 30 do
    fs.mkdir(("%s/tree/%d/x"):format(dir, i))
    fs.write(("%s/tree/%d/x/y"):format(dir, i), "", { append = true })
  end
end
for _ = 1, 5 do
  fill()
  local lists = {}
  for i = 1, 3 do
    lists[i] = flow.spawn(function() return fs.list(dir .. "/tree", { recursive = true }) end)
  end
  fs.remove(dir .. "/tree", { recursive = true })
  for i = 1, 3 do
    lists[i]:wait()
    -- The tree itself may be gone before it was opened.
    if lists[i].faulted then check.equal(lists[i].error.name, "ENOENT") end
  end
end
fill()
local first = flow.spawn(function() fs.remove(dir .. "/tree", { recursive = true }) end)
local second = flow.spawn(function() fs.remove(dir .. "/tree", { recursive = true }) end)
first:wait()
second:wait()
for _, task in ipairs { first, second } do
  if task.faulted then check.equal(task.error.name, "ENOENT") end
end
check.equal(fs.exists(dir .. "/tree"), false)
