-- The milliseconds that items of remote.lua take, which occupy a worker each, when nothing else
-- takes time: remote_peer.lua COUNT MS WORKERS
local luv = require "luv"
local count, ms, workers = tonumber(arg[1]), math.tointeger(arg[2]), tonumber(arg[3])
local some = 200 // ms
local before = luv.hrtime()
for _ = 1, some do luv.sleep(ms) end
print((luv.hrtime() - before) / 1e6 / some * count / workers)
