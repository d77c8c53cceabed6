-- Random streams of events are parsed as a plain reading of the standard does, wherever their bytes are split.
-- With arguments: how many, and a seed.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local count = tonumber(arg[1]) or os.getenv "FLOWLUA_SANITIZER" and 20 or 100
local seed = tonumber(arg[2]) or os.time()
math.randomseed(seed)

-- The standard, line by line, with the whole text at hand.
local function model(text)
  text = text:gsub("^\u{feff}", ""):gsub("\r\n", "\n"):gsub("\r", "\n")
  local events, data, kind, id = {}, nil, "", nil
  for line in text:gmatch "([^\n]*)\n" do
    local name, value = line:match "^([^:]*):? ?(.*)$"
    if line == "" then
      if data then events[#events + 1] = { event = kind == "" and "message" or kind, data = data, id = id } end
      data, kind = nil, ""
    elseif line:sub(1, 1) == ":" then goto continue
    elseif name == "data" then data = data and data .. "\n" .. value or value
    elseif name == "event" then kind = value
    elseif name == "id" and not value:find("\0", 1, true) then id = value
    end
    ::continue::
  end
  return events
end

local parts = { "data", "data:", "data: ", "event: a", "event", "id: 7", "id", "id: a\0b", "retry: 5", "retry: x", ":", ": c",
  "\n", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n", "\u{feff}", " ", "x", "ä", "\0", "datax", "Data: x", "data:  two", "\xff" }
for i = 1, count do
  local words = {}
  for j = 1, math.random(40) do words[j] = parts[math.random(#parts)] end
  local text = table.concat(words)
  local expected = model(text)
  for _, size in ipairs { 1, math.random(7), #text } do
    local url = server:raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" .. text, { size = size })
    local seen = {}
    for event in flow.http { url = url, stream = true }:await():events() do
      seen[#seen + 1] = { event = event.event, data = event.data, id = event.id }
    end
    check.same(seen, expected, ("seed %d, stream %d, pieces of %d: %q"):format(seed, i, size, text))
  end
end
