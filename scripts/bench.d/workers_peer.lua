-- Functions on luv's thread pool: strings and numbers go to its threads as they are, tables are
-- packed by hand. No log, no errors; results in order.
--
--   workers_peer.lua trivial|string|table COUNT
local uv = require "luv"
local kind, count = arg[1], tonumber(arg[2])

local letters = ("j"):rep(1000)
local function packed(list) return string.pack(letters, table.unpack(list)) end
local function unpacked(text)
  local list = { string.unpack(letters, text) }
  list[#list] = nil -- where unpacking ended
  return list
end
local function same(item) return item end

local kinds = {
  trivial = { unit = 1e9, item = same, pack = same, unpack = same },
  string = {
    unit = 1e6, pack = same, unpack = same,
    item = function(i) return string.char(i % 256):rep(10240) end,
  },
  table = {
    unit = 1e6, pack = packed, unpack = unpacked,
    item = function(i)
      local numbers = {}
      for k = 1, 1000 do numbers[k] = k + i end
      return numbers
    end,
  },
}

local chosen = assert(kinds[kind], "no such kind")
local items, results, finished = {}, {}, 0
for i = 1, count do items[i] = chosen.item(i) end

local function done(index, item)
  results[index] = chosen.unpack(item)
  finished = finished + 1
end
local work
if kind == "table" then
  work = uv.new_work(function(index, text)
    local format = ("j"):rep(#text // 8)
    local list = { string.unpack(format, text) }
    list[#list] = nil
    return index, string.pack(format, table.unpack(list))
  end, done)
elseif kind == "trivial" then
  work = uv.new_work(function(index, item) return index, item + 1 end, done)
else
  work = uv.new_work(function(index, item) return index, item end, done)
end

require "rounds"(chosen.unit / count, function()
  finished = 0
  for i = 1, count do work:queue(i, chosen.pack(items[i])) end
  uv.run()
end, function() assert(finished == count and #results == count) end)
