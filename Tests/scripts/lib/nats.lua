-- A client of NATS that shares nothing with flowlua: Tests/servers/nats_client.py. Such a test says `-- python: nats`
-- and runs on the real clock.
--
--   local client <close> = nats.client(server.url)
--   print(client:stream { name = "FLOWLUA_WORK" }.state.messages)
local flow = require "flow"
local json = flow.json

local nats, Client = {}, {}

-- All commands of the program are methods; their fields are those of the table.
function Client.__index(client, name)
  return function(_, fields)
    local command = { ["do"] = name }
    for key, value in pairs(fields) do command[key] = value end
    client.program:write(json.encode(command) .. "\n")
    local line, stream = client.replies()
    if stream ~= "stdout" then error(line or "the client has ended", 2) end
    local reply = json.decode(line)
    if reply.error then error(name .. ": " .. reply.error, 2) end
    return reply
  end
end

function Client.__close(client)
  client.program:close_stdin()
  client.program:await()
end

function nats.client(url)
  local program = flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON", "Tests/servers/nats_client.py", url }, { stdin = "pipe" })
  local replies = program:lines()
  local line = replies()
  if line ~= "ready" then error(line, 2) end
  return setmetatable({ program = program, replies = replies }, Client)
end

-- Bytes in base64, for the fields of commands.
function nats.base64(bytes)
  local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  local parts = {}
  for place = 1, #bytes, 3 do
    local a, b, c = bytes:byte(place, place + 2)
    local all = a << 16 | (b or 0) << 8 | (c or 0)
    for k = 1, 4 do
      local digit = all >> (24 - 6 * k) & 63
      parts[#parts + 1] = (k == 3 and not b or k == 4 and not c) and "=" or letters:sub(digit + 1, digit + 1)
    end
  end
  return table.concat(parts)
end

return nats
