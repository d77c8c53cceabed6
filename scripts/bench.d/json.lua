-- JSON to Lua values or back, beside lua-cjson: prints the MB/s of processor time of both, each the
-- best of several turns.
--
--   json.lua tweets|catalogue|map decode|encode
package.path = arg[0]:match("^(.*)/") .. "/?.lua;" .. package.path
local json, cjson = require "flow.json", require "cjson"
local text = require "documents"[arg[1]]()

local turns = 9
local function best(convert, input)
  local least, length = math.huge, #text
  for _ = 1, turns do
    collectgarbage()
    local begin = os.clock()
    local result = convert(input)
    least = math.min(least, os.clock() - begin)
    if type(result) == "string" then length = #result end
  end
  return length / least / 1e6
end

local ours, theirs
if arg[2] == "decode" then
  ours, theirs = best(json.decode, text), best(cjson.decode, text)
else
  ours, theirs = best(json.encode, json.decode(text)), best(cjson.encode, cjson.decode(text))
end
print(("%.0f\n%.0f"):format(ours, theirs))
