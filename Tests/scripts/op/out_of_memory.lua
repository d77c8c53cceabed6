-- An op that needs more memory than there is fails; the host and the other ops go on.
local flow, check = require "flow", require "check"
-- A sanitizer's allocator ends the program where malloc returns NULL.
if os.getenv "FLOWLUA_SANITIZER" then return end
if not arg[1] then
  -- Once more, with little address space.
  local quoted = {}
  for i, word in ipairs { arg[-1], arg[0], "limited" } do
    quoted[i] = "'" .. word:gsub("'", "'\\''") .. "'"
  end
  local status, how, code = os.execute("ulimit -v 400000; exec " .. table.concat(quoted, " "))
  assert(status, how .. " " .. tostring(code))
  return
end
local run = flow.op("HugeOp", function(ctx)
  local text = ("x"):rep(1 << 20)
  while true do text = text .. text end
end):run()
check.equal(run.ok, false)
check.equal(run.error.kind, "error")
check.contains(run.error.message, "not enough memory")
assert(flow.op("SmallOp", function() end):run().ok)
