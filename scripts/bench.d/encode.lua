-- Encodes a list of arg[1] small objects as JSON ten times.
local json = require "flow.json"
local list = {}
for i = 1, tonumber(arg[1]) do list[i] = { id = i, name = "an object", tags = {} } end
for _ = 1, 10 do json.encode(list) end
