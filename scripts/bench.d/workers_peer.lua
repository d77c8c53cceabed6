-- The same with luv's thread pool: strings and numbers go to its threads as they are, tables are
-- packed by hand. No log, no errors; results in order.
--
--   workers_peer.lua trivial|strings|tables
local uv = require "luv"
local mode = arg[1]
local counts = { trivial = 100000, strings = 1000, tables = 1000 }
local units = { trivial = 1, strings = 1e3, tables = 1e3 }
local n = counts[mode]

local items, results, finished = {}, {}, 0
for i = 1, n do
  if mode == "trivial" then
    items[i] = i
  elseif mode == "strings" then
    items[i] = ("%05d"):format(i):rep(2048)
  else
    items[i] = {}
    for k = 1, 1000 do items[i][k] = i + k end
  end
end

local format = ("j"):rep(1000)
local function packed(list) return string.pack(format:sub(1, #list), table.unpack(list)) end
local function unpacked(text) return { string.unpack(format:sub(1, #text // 8), text) } end

local work
if mode == "tables" then
  work = uv.new_work(function(index, text)
    local letters = ("j"):rep(#text // 8)
    local list = { string.unpack(letters, text) }
    list[#list] = nil  -- where unpacking ended
    return index, string.pack(letters, table.unpack(list))
  end, function(index, text)
    results[index] = unpacked(text)
    finished = finished + 1
  end)
else
  work = uv.new_work(function(index, item) return index, item end, function(index, item)
    results[index] = item
    finished = finished + 1
  end)
end

-- The threads are started before the clock runs.
work:queue(1, mode == "tables" and packed { 1 } or items[1])
uv.run()
finished = 0
local before = uv.hrtime()
for i = 1, n do work:queue(i, mode == "tables" and packed(items[i]) or items[i]) end
uv.run()
local elapsed = uv.hrtime() - before
assert(finished == n and #results == n)
print(elapsed / n / units[mode])
