-- A library warns of what is deprecated, once for each line of the script, or refuses it with FLOWLUA_DEPRECATIONS=error.
local host = require "host"
local check = require "check"
local flow = require "flow"

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local function write(name, text)
  local file <close> = assert(io.open(folder .. "/" .. name, "w"))
  file:write(text)
end
local function run(name, environment, options)
  local words = { "-e", ("package.path = '%s/?.lua'"):format(folder) }
  table.move(options or {}, 1, #(options or {}), #words + 1, words)
  words[#words + 1] = folder .. "/" .. name
  local result = host.run(host.binary, words, { environment = environment or { FLOWLUA_DEPRECATIONS = "" } })
  result.stderr = result.stderr:gsub(folder:gsub("%p", "%%%0") .. "/", ""):gsub(host.binary:gsub("%p", "%%%0"), "flowlua")
  return result
end

write("uploads.lua", [[
local flow = require "flow"
local uploads = {}
uploads.UploadOp = flow.op("UploadOp", function(ctx, path) ctx:log("uploaded", path) end)

function uploads.send(path)
  flow.deprecated("uploads.send", "use uploads.put", "2.0")
  return uploads.UploadOp(path):run()
end

function uploads.options(t)
  if t.speed then flow.deprecated("field 'speed' of uploads.options", "it has no effect any more") end
end

return setmetatable(uploads, { __index = function(_, name)
  if name ~= "SendOp" then return nil end
  flow.deprecated("uploads.SendOp", "use uploads.UploadOp")
  return uploads.UploadOp
end })
]])
write("main.lua", [[
local uploads = require "uploads"
for n = 1, 100 do uploads.send("a" .. n) end
uploads.send "b"
local flow = require "flow"
flow.new("all")
  :add(uploads.SendOp "c")
  :add(uploads.UploadOp "d")
  :run()
uploads.options {}
uploads.options { speed = 1 }
coroutine.wrap(function()
  uploads.send "e"
end)()
print "done"
]])
local warnings = [[
flowlua: warning: main.lua:2: uploads.send is deprecated since 2.0; use uploads.put
flowlua: warning: main.lua:3: uploads.send is deprecated since 2.0; use uploads.put
flowlua: warning: main.lua:6: uploads.SendOp is deprecated; use uploads.UploadOp
flowlua: warning: main.lua:10: field 'speed' of uploads.options is deprecated; it has no effect any more
flowlua: warning: main.lua:12: uploads.send is deprecated since 2.0; use uploads.put
]]
for _, environment in ipairs { {}, { FLOWLUA_DEPRECATIONS = "" }, { FLOWLUA_DEPRECATIONS = "warn" } } do
  -- The first one is the environment of the tests.
  if not next(environment) and os.getenv "FLOWLUA_DEPRECATIONS" then environment = nil end
  local result = run("main.lua", environment)
  check.equal(result.stderr, warnings)
  check.equal(result.status, 0)
  check.equal(result.stdout, "done\n")
end

-- As errors, they are raised at that line, and pcall catches them.
local result = run("main.lua", { FLOWLUA_DEPRECATIONS = "error" })
check.equal(result.status, 1)
check.equal(result.stdout, "")
check.match(result.stderr, "^flowlua: main%.lua:2: uploads%.send is deprecated since 2%.0; use uploads%.put\nstack traceback:\n")
check.contains(result.stderr, "uploads.lua:6: in function 'uploads.send'", "main.lua:2: in main chunk")
write("caught.lua", [[
local uploads = require "uploads"
for _ = 1, 2 do
  local ok, e = pcall(uploads.send, "a")
  print(ok, e.kind)
end
]])
check.equal(run("caught.lua", { FLOWLUA_DEPRECATIONS = "error" }).stdout, "false\tusage\nfalse\tusage\n")
-- -E ignores the variable, and another value is refused before the script runs.
check.equal(run("main.lua", { FLOWLUA_DEPRECATIONS = "error" }, { "-E" }).stderr, warnings)
result = run("main.lua", { FLOWLUA_DEPRECATIONS = "no" })
check.equal(result.status, 2)
check.equal(result.stdout .. result.stderr, "flowlua: FLOWLUA_DEPRECATIONS is 'warn' or 'error', not 'no'\n")

-- Code in workers: a line is reported once, whichever workers execute it.
write("workers.lua", [[
local flow = require "flow"
local SendOp = flow.op("SendOp", { thread = "worker", needs = { item = "integer" }, run = function()
  local uploads = require "old"
  uploads.send()
end })
local list = {}
for n = 1, 200 do list[n] = n end
local run = flow.new("all"):add_grouped(SendOp, { input = "items", max_concurrent = 4 }):run { items = list }
print(run.ok, run.error)
]])
write("old.lua", [[
local flow = require "flow"
return { send = function() flow.deprecated("old.send", "send nothing") end }
]])
result = run("workers.lua", nil, { "--workers", "4" })
check.equal(result.stderr, "flowlua: warning: workers.lua:4: old.send is deprecated; send nothing\n")
check.equal(result.stdout, "true\tnil\n")
result = run("workers.lua", { FLOWLUA_DEPRECATIONS = "error" })
check.contains(result.stdout, "false\t[all/SendOp #", "workers.lua:4: old.send is deprecated; send nothing")

-- An op has no caller: then the line of the call itself counts.
write("op.lua", [[
local flow = require "flow"
flow.op("OldOp", function()
  flow.deprecated("OldOp", "use NewOp")
end):run()
flow.deprecated("op.lua", "run another script")
flow.deprecated(flow.secret("hunter2") and "hunter2", "hunter2")
]])
check.equal(run("op.lua").stderr, [[
flowlua: warning: op.lua:3: OldOp is deprecated; use NewOp
flowlua: warning: op.lua:5: op.lua is deprecated; run another script
flowlua: warning: op.lua:6: <redacted> is deprecated; <redacted>
]])

-- A script that warns of ever new names isn't heard without end.
write("names.lua", [[
local flow = require "flow"
local function old(n) flow.deprecated("name" .. n, "use nothing") end
for n = 1, 5000 do old(n) end
]])
local _, count = run("names.lua").stderr:gsub("\n", "")
check.equal(count, 1000)

local long = ("x"):rep(100000)
for _, case in ipairs {
  { {}, "bad argument #1 to 'deprecated' (string expected, got no value)" },
  { { "a" }, "bad argument #2 to 'deprecated' (string expected, got no value)" },
  { { "", "b" }, "bad argument #1 to 'deprecated' (a text expected, got an empty string)" },
  { { "a", "b", 2.0 }, "bad argument #3 to 'deprecated' (string expected, got number)" },
  { { "a", "b", "" }, "bad argument #3 to 'deprecated' (a text expected, got an empty string)" },
  { { long, {} }, "bad argument #2 to 'deprecated' (string expected, got table)" },
} do
  check.usage(function() flow.deprecated(table.unpack(case[1])) end, "deprecated", case[2])
end
assert(os.execute("rm -r " .. folder))
