-- Files are listed, hashed and written in workers as on the main thread.
local check = require "check"
local flow = require "flow"
local fs = flow.fs

local dir = fs.temp_dir()
local HashOp = flow.op("HashOp", {
  thread = "worker", needs = { name = "string", dir = "string" }, gives = { hash = "string" },
  primary_input = "name",
  run = function(ctx)
    local own = require "flow".fs
    local path = ctx:get "dir" .. "/" .. ctx:get "name"
    own.write(path, ctx:get "name")
    ctx:set("hash", own.hash(path))
  end,
})
local names = {}
for i = 1, 40 do names[i] = ("%02d"):format(i) end
local run = flow.new("hashes"):data { names = names, dir = dir }
  :add_grouped(HashOp, { input = "names", output = "hashes", max_concurrent = 8 }):run()
check.equal(run.ok, true)
for i, name in ipairs(names) do check.equal(run.data.hashes[i], fs.hash { bytes = name }) end
check.equal(#fs.list(dir, { match = "[0-4]?" }), 40)
