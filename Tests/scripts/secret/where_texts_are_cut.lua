-- Secrets are replaced before a text is shortened, so that no part of one shows.
local flow, check, host = require "flow", require "check", require "host"
local text = "hunter22-correct-horse-battery-staple"
local secret = flow.secret(text)

-- Nothing shows four bytes of the secret in a row, wherever they are from.
local function hides(shown, what)
  for first = 1, #text - 3 do
    if shown:find(text:sub(first, first + 3), 1, true) then
      error(("%s shows %q: %s"):format(what, text:sub(first, first + 3), shown), 2)
    end
  end
end

local function failing(body, data)
  local run = flow.op("FailOp", body):run(data)
  hides(run:summary(), "the summary")
  return run.error
end

for length = 60, 125 do
  local filler = ("x"):rep(length)
  -- A raised table.
  local e = failing(function() error { filler .. text } end)
  check.contains(e.message, "error object is a table value: {xxx")
  hides(e.message, "a raised table")
  -- A table under a key of another type, as an input and as an output.
  e = failing(function(ctx) ctx:get("list", "string") end, { list = { filler, text } })
  check.contains(e.message, "<list> in data bucket is <{xxx", "with type <table>")
  hides(e.message, "a mismatch")
  local GiveOp = flow.op("GiveOp", {
    gives = { list = "string" }, run = function(ctx) ctx:set("list", { filler .. text }) end,
  })
  hides(GiveOp:run().error.message, "an output")
  -- The command of a program.
  e = flow.exec({ "false", filler .. text })
  e:wait()
  check.contains(e.error.message, "false xxx")
  hides(e.error.message, "a command")
end

-- The end of what a program says.
for length = 360, 400, 4 do
  local task = flow.exec { "sh", "-c", "echo \"$0$1\" >&2; exit 1", text, ("x"):rep(length) }
  task:wait()
  check.contains(task.error.message, "exited with status 1: ")
  hides(task.error.message, "a program's last words")
end

-- A wrong use, which quotes names and values.
for length = 440, 500, 3 do
  local ok, e = pcall(flow.op, ("x"):rep(length), { [("y"):rep(length) .. text] = 1 })
  assert(not ok)
  check.contains(tostring(e), "unknown field", "…")
  hides(tostring(e), "a wrong use")
end

-- Lua shortens the names of chunks, at the end or at the beginning.
for length = 0, 60, 3 do
  local filler = ("x"):rep(length)
  for kind, name in pairs {
    text = filler .. text, ["a file"] = "@" .. text .. "/" .. filler, ["a name"] = "=" .. filler .. text,
  } do
    local chunk = assert(load("error 'boom'", name))
    local e = failing(function() chunk() end)
    check.contains(e.message, "boom")
    hides(e.message, "the message of a chunk from " .. kind)
    hides(e.traceback, "the traceback of a chunk from " .. kind)
  end
end

-- Shorter texts stay as they are.
check.contains(failing(function() error { ("x"):rep(20) } end).message, "{xxxxxxxxxxxxxxxxxxxx})")

-- The plan of a run, whose names are on one line.
local plan = host.script([[
  local flow = require "flow"
  flow.secret "hunter22-correct\nhorse-battery"
  flow.new("f"):add(flow.op("A hunter22-correct\nhorse-battery Op", function() end)):run()
]], {}, { before = { "--check" } })
check.contains(plan.stdout, "plan:\n  1. A <redacted> Op\n")
check.lacks(plan.stdout, "hunter22", "battery")

-- The report at exit, of the main state and of workers: a secret is one wherever it was made.
local result = host.script(([[
local flow = require "flow"
local secret = flow.secret(%q)
for i = 1, 2000 do flow.secret("another secret " .. i) end
flow.spawn(function() error { ("x"):rep(100) .. %q } end)
flow.spawn(function() error("bad " .. %q) end)]]):format(text, text, text))
check.equal(result.status, 1)
check.contains(result.stderr, "bad <redacted>", "{xxx")
hides(result.stderr, "a report")

result = host.script(([[
local flow = require "flow"
local half = %q
flow.op("WorkOp", { thread = "worker", run = function()
  local made = flow.secret(half .. "battery-staple")
  error("the worker has " .. half .. "battery-staple")
end }):run()
flow.op("LaterOp", function() error("and so has " .. half .. "battery-staple") end):run()
]]):format("hunter22-correct-horse-"))
check.equal(result.status, 1)
check.contains(result.stderr, "the worker has <redacted>", "and so has <redacted>")
check.lacks(result.stderr, "battery")
