-- A list of arg[1] small tables is built by method calls and released. Prints ns a call.
local n = tonumber(arg[1])
local List = {}
List.__index = List
function List:add(op)
  self[#self + 1] = { op = op }
  return self
end
local function nothing() end
collectgarbage()
local before = os.clock()
local list = setmetatable({}, List)
for _ = 1, n do list:add(nothing) end
list = nil -- luacheck: ignore 311
collectgarbage()
print((os.clock() - before) / n * 1e9)
