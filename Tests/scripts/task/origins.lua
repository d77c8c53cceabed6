-- A task knows the place where it was made.
local flow, check = require "flow", require "check"
local function place(task) return (tostring(task):match("^task at (.-) ")) end
local function pass() end
local function line(n) return "Tests/scripts/task/origins.lua:" .. n end

-- A hook (before any place is known) sees nothing but the script's own code.
local seen = {}
debug.sethook(function() seen[debug.getinfo(2, "S").short_src] = true end, "cl")
local pending = flow.context().task
debug.sethook()
check.equal(place(pending), line(10))
for source in pairs(seen) do assert(source == "[C]" or source:find("origins.lua", 1, true), source) end

-- More places in one function than are remembered, again and again, with methods and functions.
for _ = 1, 3 do
  local tasks = {
    pending:next_on_success(pass),
    pending:next(pass),
    pending:finally(pass),
    flow.with_delay(0),
    flow.spawn(pass),
    pending:next_on_error(pass),
    flow.resolved(2):next(pass),
  }
  for i, task in ipairs(tasks) do check.equal(place(task), line(17 + i)) end
end

-- Functions in turn, and closures of one function.
local function first() return pending:next(pass) end
local function second() return pending:next(pass) end
for _ = 1, 3 do
  check.equal(place(first()), line(30))
  check.equal(place(second()), line(31))
  local third = function() return _ and pending:next(pass) end
  check.equal(place(third()), line(35))
end

-- Through functions of C; and in a coroutine.
check.equal(place(select(2, pcall(pending.next, pending, pass))), line(40))
check.equal(place(coroutine.wrap(function() return pending:next(pass) end)()), line(41))

-- A function that comes to have the address of one that is gone.
local code = "local task, f = ... return task:next(f)"
for i = 1, 50 do
  local address
  do
    local old = load(code, "@old.lua")
    check.equal(place(old(pending, pass)), "old.lua:1")
    address = tostring(old)
  end
  collectgarbage()
  local others = {}
  for n = 1, 200 do
    others[n] = load(("\n"):rep(i) .. code, "@new" .. n .. ".lua")
    if tostring(others[n]) == address then
      check.equal(place(others[n](pending, pass)), ("new%d.lua:%d"):format(n, i + 1))
      break
    end
  end
end
