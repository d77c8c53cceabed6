-- Replies with bytes that were changed at random are a response or an error of their own; never a crash or a hang.
-- With arguments: how many, and a seed.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local count = tonumber(arg[1]) or os.getenv "FLOWLUA_SANITIZER" and 100 or 400
local seed = tonumber(arg[2]) or os.time()
math.randomseed(seed)

local replies = {
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\nhello",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: 1\r\n\r\n",
  "HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-4/5\r\nContent-Length: 5\r\n\r\nhello",
  "HTTP/1.1 503 Busy\r\nRetry-After: Sun, 06 Nov 2094 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 302 Found\r\nLocation: /echo?a=1#b\r\nSet-Cookie: a=b; Max-Age=5; Path=/\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
  "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\31\139\8\0\0",
  "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
}
local tokens = { "\r\n", "\n", "\r", "\0", ":", " ", "-1", "99999999999999999999", "HTTP/1.1", "\xff", ("x"):rep(300), "0x10", "\t",
  "chunked", "Content-Length: 3\r\n", "\r\n\r\n" }
local function changed(text)
  for _ = 1, math.random(4) do
    local at = math.random(#text)
    local what = math.random(5)
    if what == 1 then text = text:sub(1, at - 1) .. string.char(math.random(0, 255)) .. text:sub(at + 1)
    elseif what == 2 then text = text:sub(1, at)
    elseif what == 3 then text = text:sub(1, at) .. tokens[math.random(#tokens)] .. text:sub(at + 1)
    elseif what == 4 then text = text:sub(1, at - 1) .. text:sub(at + math.random(8))
    else text = text:sub(1, at) .. text:sub(math.random(#text))
    end
    if text == "" then return "x" end
  end
  return text
end

local folder <close> = servers.folder()
local client = flow.http.client { cookies = true }
local tasks = {}
for i = 1, count do
  local text = changed(replies[math.random(#replies)])
  local request = { url = server:raw(text, { size = math.random(2) == 1 and #text or math.random(20) }), timeout = 60 }
  if math.random(4) == 1 then
    request.save, request.resume = folder .. "/" .. i % 5, true
    if math.random(2) == 1 then request.resume = nil end
  end
  tasks[i] = client(request)
  if i % 20 == 0 then
    for j = i - 19, i do
      tasks[j]:wait()
      local e = tasks[j].error
      if e and not ({ http = true, network = true, error = true })[e.kind] then
        error(("seed %d: %s: %s"):format(seed, e.kind, e), 0)
      end
    end
  end
end
-- Of another server: rests of such replies may still arrive on connections that look as if they could be used again.
local other <close> = servers.hostile()
check.equal(flow.http(other:url("/reply", { body = "well" })):await().body, "well")
