-- Types that a script builds without end don't fill the memory.
local flow, check = require "flow", require "check"
local function resident()
  local file <close> = assert(io.open("/proc/self/statm"))
  local _, pages = file:read("n", "n")
  return pages * 4096
end
local TypesOp = flow.op("TypesOp", function(ctx)
  ctx:set("n", 1)
  for i = 1, os.getenv "FLOWLUA_SANITIZER" and 2000 or 50000 do ctx:get("n", "Type" .. i .. "|integer") end
end)
assert(TypesOp:run().ok)
local before = resident()
for _ = 1, 2 do assert(TypesOp:run().ok) end
-- A sanitizer keeps what is freed.
assert(os.getenv "FLOWLUA_SANITIZER" or resident() - before < 8e6, resident() - before)
