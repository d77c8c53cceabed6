-- Random compressed bodies are read as they were; one that is cut at any byte fails as `network`, and nothing of it is saved.
-- clock: real: a server is outside
--
--   bodies.lua [COUNT [SEED]]     that many bodies, 5 by default, from a seed on
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local folder <close> = servers.folder()

local count = math.tointeger(arg[1] or 5)
local seed = math.tointeger(arg[2] or os.time())
math.randomseed(seed)
local random = math.random
local function any(list) return list[random(#list)] end

-- Packs what stands on stdin by a seed. Prints where a cut leaves a whole body, and then the packed bytes.
local PACK = [[
import random, struct, subprocess, sys, zlib
encoding, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)
data = sys.stdin.buffer.read()

def packed(data, bits):
    packer = zlib.compressobj(random.randint(0, 9), zlib.DEFLATED, bits, random.randint(1, 9), random.randint(0, 4))
    result = b""
    while data and random.random() < 0.7:
        count = random.randint(1, len(data))
        result += packer.compress(data[:count])
        result += packer.flush(random.choice([zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_NO_FLUSH]))
        data = data[count:]
    return result + packer.compress(data) + packer.flush()

def gzip_member(data):
    flags, extra = random.choice([0, 0, random.randint(0, 31)]), b""
    head = bytes([31, 139, 8, flags]) + struct.pack("<IBB", random.getrandbits(32), 0, 255)
    if flags & 4:
        extra = random.randbytes(random.randint(0, 20))
        head += struct.pack("<H", len(extra)) + extra
    head += b"name\0" if flags & 8 else b""
    head += b"a comment\0" if flags & 16 else b""
    head += struct.pack("<H", zlib.crc32(head) & 0xffff) if flags & 2 else b""
    return head + packed(data, -15) + struct.pack("<II", zlib.crc32(data), len(data))

def by_program(*words):
    return subprocess.run(words, input=data, stdout=subprocess.PIPE, check=True).stdout

parts = []
if encoding == "gzip":
    parts = [gzip_member(data)]
elif encoding == "members":
    for _ in range(random.randint(1, 4)):
        count = random.randint(0, len(data))
        parts.append(gzip_member(data[:count]))
        data = data[count:]
    parts.append(gzip_member(data))
elif encoding == "deflate":
    parts = [packed(data, random.choice([15, 9, -15, -9]))]
elif encoding == "br":
    parts = [by_program("brotli", "-q", str(random.randint(0, 11)), "-w", str(random.choice([0, 10, 16, 24])), "-c")]
else:
    parts = [by_program("zstd", "-" + str(random.randint(1, 19)), random.choice(["--check", "--no-check"]), "-qc")]
ends, size = [], 0
for part in parts:
    size += len(part)
    ends.append(str(size))
sys.stdout.buffer.write(" ".join(ends).encode() + b"\n" + b"".join(parts))
]]
local function pack(encoding, text)
  local words = { "/usr/bin/python3", "-c", PACK, encoding, random(1 << 30) }
  local ends, packed = flow.exec(words, { stdin = { bytes = text } }):await().stdout:match "^([%d ]+)\n(.*)$"
  local whole = {}
  for number in ends:gmatch "%d+" do whole[tonumber(number)] = true end
  return packed, whole
end

local function text()
  local parts = {}
  for i = 1, random(0, 30) do
    parts[i] = any {
      function() return string.char(random(0, 255)) end,
      function() return ("x"):rep(random(300)) end,
      function() return ("%d,%s;"):format(i, "text") end,
      function() return parts[random(#parts)] or "" end,
    }()
  end
  return table.concat(parts)
end

-- The ways to send a body of which the client may see the end: the end of the connection, a length, or chunks.
local function chunked(body)
  local chunks = {}
  while #body > 0 do
    local size = random(#body)
    chunks[#chunks + 1] = ("%x\r\n%s\r\n"):format(size, body:sub(1, size))
    body = body:sub(size + 1)
  end
  return table.concat(chunks)
end
local framings = {
  function(body) return "", body end,
  function(body) return ("Content-Length: %d\r\n"):format(#body), body end,
  function(body) return "Transfer-Encoding: chunked\r\n", chunked(body) .. "0\r\n\r\n" end,
}
-- Those in which the connection ends too early, too.
local cut_framings = {
  function(body, size) return ("Content-Length: %d\r\n"):format(size), body end,
  function(body) return "Transfer-Encoding: chunked\r\n", chunked(body) end,
}
local function request(encoding, lines, body)
  local wire = encoding == "members" and "gzip" or encoding
  local bytes = ("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n%sConnection: close\r\n\r\n%s"):format(wire, lines, body)
  return { url = server:raw(bytes, { size = any { 1, random(20), #bytes, #bytes } }), timeout = 60 }
end
-- The body, saved, streamed, or at once.
local function read(options, way, path)
  if way == "save" then options.save = path end
  if way == "stream" then options.stream = true end
  local res = flow.http(options):await()
  if way == "save" then return flow.fs.read(path) end
  if way ~= "stream" then return res.body end
  local parts = {}
  for part in res:chunks() do parts[#parts + 1] = part end
  return table.concat(parts)
end
local ways = { "save", "stream", "body" }

for number = 1, count do
  local encoding = ({ "gzip", "members", "deflate", "br", "zstd" })[(number - 1) % 5 + 1]
  local body = text()
  local packed, whole = pack(encoding, body)
  local function failed(about, ...)
    error(("seed %d, body %d (%s, %d bytes of %d): "):format(seed, number, encoding, #packed, #body) .. about:format(...), 0)
  end
  for _, framing in ipairs(framings) do
    for _, way in ipairs(ways) do
      local path = folder .. "/whole"
      local ok, found = pcall(read, request(encoding, framing(packed)), way, path)
      if not ok or found ~= body then failed("not read whole (%s): %s", way, ok and "another text" or found) end
      if way == "save" then flow.fs.remove(path) end
    end
  end
  local op = flow.op("CutOp", { primary_input = "size", run = function(ctx)
    local size = ctx:get "size"
    local part, way = packed:sub(1, size), any(ways)
    -- The end of a member could be the body's, unless the connection says otherwise.
    local framing = any(whole[size] and cut_framings or any { framings, cut_framings })
    local lines, sent = framing(part, #packed)
    local ok, found = pcall(read, request(encoding, lines, sent), way, ("%s/cut%d"):format(folder, size))
    if ok then failed("%d bytes by '%s' are a success with %d bytes (%s)", size, lines:match "%g*", #found, way) end
    if found.kind ~= "network" or found.phase ~= "receive" then
      failed("%d bytes by '%s' (%s) fail as %s, phase %s: %s", size, lines:match "%g*", way, found.kind, found.phase, found)
    end
  end })
  local sizes = {}
  for size = 1, #packed - 1 do sizes[size] = size end
  local run = flow.new("cuts"):data { sizes = sizes }
    :add_grouped(op, { input = "sizes", max_concurrent = 8, allow_empty = true }):run()
  if run.error then error(run.error.message, 0) end
  local left = flow.fs.list(folder.path, { hidden = true })
  if #left > 0 then failed("%d files are left: %s", #left, left[1]) end
  check.equal(flow.http(server:url("/reply", { body = "well" })):await().body, "well")
end
