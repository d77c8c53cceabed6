-- JSON is read from and written to files while other code continues, also in workers.
local flow = require "flow"
local check = require "check"

local json = flow.json
local path = os.tmpname()
json.write(path, { b = { 1, 2 }, a = "x" })
local file <close> = assert(io.open(path))
check.equal(file:read "a", '{"a":"x","b":[1,2]}\n')
check.same(json.read(path), { b = { 1, 2 }, a = "x" })
json.write(path, { 1 }, { indent = 1 })
local indented <close> = assert(io.open(path))
check.equal(indented:read "a", "[\n 1\n]\n")

-- Other tasks run meanwhile.
local steps = {}
local reading = flow.spawn(function()
  local value = json.read(path)
  steps[#steps + 1] = "read"
  return value[1]
end)
steps[#steps + 1] = "after spawn"
check.equal(reading:await(), 1)
check.same(steps, { "after spawn", "read" })

local ReadOp = flow.op("ReadOp", {
  needs = { path = "string" }, gives = { first = "integer" }, thread = "worker",
  run = function(ctx) ctx:set("first", flow.json.read(ctx:get "path")[1]) end,
})
check.equal(ReadOp:run({ path = path }).data.first, 1)

local out = assert(io.open(path, "w"))
out:write "{\n  \"a\" 1}"
out:close()
local error = check.raises(function() json.read(path) end, "files.lua:35: '" .. path .. "': expected ':' at line 2, column 7")
check.equal(error.code, "json")
check.equal(error.line, 2)
os.remove(path)
check.raises(function() json.read(path) end, "files.lua:39: can't read '" .. path .. "'")
check.raises(function() json.write(path .. "/x", 1) end, "can't write '" .. path .. "/x'")
