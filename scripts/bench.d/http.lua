-- Requests to a server: http.lua get URL COUNT prints the microseconds of time and of CPU time of
-- each of COUNT GETs, 64 at once; http.lua save URL FILE saves one body to a file.
local flow = require "flow"
local mode, url, last = table.unpack(arg)

if mode == "save" then
  flow.http { url = url, save = last }:await()
  return
end

local count, started = tonumber(last), 0
-- Loading the library and connecting aren't part of a request.
flow.http(url):await()
local stop = require "clock"()
local loops = {}
for i = 1, 64 do
  loops[i] = flow.spawn(function()
    while started < count do
      started = started + 1
      assert(#flow.http(url):await().body == 1024)
    end
  end)
end
flow.when_all_succeed(loops):await()
print(stop(1e6 / count))
