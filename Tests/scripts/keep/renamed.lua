-- A folder with a script and its store may be moved, and a renamed script continues a run that is named.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local script = kept.script [[
flow.new("work"):add(flow.op("FirstOp", function() effect "first" end))
  :add(flow.op("LastOp", function(ctx) effect "last" if os.getenv "FAIL" then ctx:fail "no" end end)):run()
]]
local failing = { FAIL = 1 }
local function fails(options, ...)
  options.environment = failing
  local result = script:run(options)
  check.equal(result.status, options.status or 1)
  script:expect_effects(...)
  return result.stderr
end
fails({ "--keep" }, "first", "last")

-- Moved with its store.
local moved = script.folder .. "-moved"
flow.fs.rename(script.folder, moved)
local _ <close> = setmetatable({}, { __close = function() flow.fs.remove(moved, { recursive = true }) end })
script.folder, script.path = moved, moved .. "/script.lua"
fails({ "--resume" }, "last")
fails({ "--resume", "--store", moved .. "/.flowlua" }, "last")
fails({ "--resume", "--store", ".flowlua" }, "last")

-- Another script with that name in another folder, over the same store, is another one.
flow.fs.mkdir(moved .. "/other")
flow.fs.copy(script.path, moved .. "/other/script.lua")
script.path = moved .. "/other/script.lua"
fails({ "--resume", "--store", moved .. "/.flowlua" }, "first", "last")
script.path = moved .. "/script.lua"

-- Renamed: its run is found only by its id, and belongs to the new name then.
local id = script:run({ "--runs" }).stdout:match "\n(r%w+)[^\n]* script.lua\n"
flow.fs.copy(script.path, moved .. "/copy.lua")
script.path = moved .. "/copy.lua"
check.contains(fails { "--resume=" .. id, status = 2 }, "run " .. id .. " is of 'script.lua', not of 'copy.lua'")
flow.fs.remove(moved .. "/script.lua")
fails({ "--resume=" .. id }, "last")
check.equal(script:run({ "--verify" }).status, 0)
fails({ "--resume" }, "last")
check.contains(script:run({ "--runs" }).stdout, " copy.lua\n", "\n1 run of other scripts: flowlua --runs --store ")
local all = flow.exec({ kept.binary(host.binary), "--runs" }, { cwd = moved }):await().stdout
check.contains(all, " copy.lua\n", " other/script.lua\n")
