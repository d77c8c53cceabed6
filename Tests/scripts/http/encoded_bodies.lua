-- A compressed body that is cut at any byte fails and saves nothing; members, padding and unknown encodings are read.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local folder <close> = servers.folder()

local TEXT = {}
for i = 1, 60 do TEXT[i] = ("%d,%d;"):format(i, i * 7919 % 1000) end
TEXT = table.concat(TEXT)
local PACK = [[import sys, zlib
data = sys.stdin.buffer.read()
packer = zlib.compressobj(9, zlib.DEFLATED, int(sys.argv[1]))
sys.stdout.buffer.write(packer.compress(data) + packer.flush())]]
local function program(...)
  local words = { ... }
  return function(text) return flow.exec(words, { stdin = { bytes = text } }):await().stdout end
end
local packers = {
  gzip = program("python3", "-c", PACK, "31"), deflate = program("python3", "-c", PACK, "15"),
  br = program("brotli", "--stdout"), zstd = program("zstd", "--stdout", "--quiet"),
}
local function response(encoding, body, lines)
  return ("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n%sConnection: close\r\n\r\n%s"):format(encoding, lines or "", body)
end
local function get(bytes, options)
  options = options or {}
  options.url = server:raw(bytes, { size = options.size })
  options.size = nil
  local task = flow.http(options)
  task:wait()
  return task
end

-- Each encoding is asked for, and read, however its bytes are split.
local asked = flow.json.decode(flow.http(server:url "/echo"):await().body).headers["accept-encoding"]
for encoding in pairs(packers) do check.contains(asked, encoding) end
local path = folder .. "/saved"
for encoding, pack in pairs(packers) do
  local packed = pack(TEXT)
  for _, size in ipairs { 1, 7, #packed + 500 } do
    check.equal(get(response(encoding, packed), { size = size }):await().body, TEXT, encoding)
  end
  check.equal(get(response(encoding:upper(), packed)):await().body, TEXT)
  check.equal(get(response(encoding, pack "")):await().body, "")
  check.equal(get(response(encoding, "", "Content-Length: 0\r\n")):await().body, "")

  -- Cut at each byte: by a connection that ends, or with a length that is right.
  for count = 1, #packed - 1 do
    local part = packed:sub(1, count)
    local task = get(response(encoding, part, count % 2 == 0 and ("Content-Length: %d\r\n"):format(count)), { save = path })
    check.equal(task.state, "failed", ("%s cut after %d of %d"):format(encoding, count, #packed))
    check.equal(task.error.kind, "network")
    check.equal(task.error.phase, "receive")
    check.contains(task.error.message, "the body ends too early", encoding)
  end
  check.same(flow.fs.list(folder.path, { hidden = true }), {})
  local task = get(response(encoding, packed:sub(1, -9)))
  check.equal(task.state, "failed")
  local res = get(response(encoding, packed:sub(1, -9)), { stream = true }):await()
  check.raises(function() for _ in res:chunks() do end end, "the body ends too early")

  -- Something else than it says.
  task = get(response(encoding, "this is no compressed text"))
  check.equal(task.error.kind, "network")
  check.contains(task.error.message, "the body isn't what its encoding says: " .. encoding)
  -- An op fetches it again.
  local op = flow.op("FetchOp", { retry = { attempts = 2, delay = 0 }, run = function(ctx)
    get(response(encoding, ctx.attempt == 1 and packed:sub(1, 9) or packed)):await()
  end })
  check.equal(op:run().ok, true)
  -- One that nobody asked for is left alone.
  check.equal(get(response(encoding, packed), { headers = { ["Accept-Encoding"] = "identity" } }):await().body, packed)
end

-- Several members are one body; what follows the last one isn't read.
local one, two = packers.gzip "hello ", packers.gzip "world"
for _, size in ipairs { 1, 1000 } do
  check.equal(get(response("gzip", one .. two), { size = size }):await().body, "hello world")
  check.equal(get(response("x-gzip", one .. ("\0"):rep(20)), { size = size }):await().body, "hello ")
end
check.equal(get(response("gzip", one .. two:sub(1, 9))).state, "failed")
check.equal(get(response("gzip", packers.gzip "" .. two)):await().body, "world")
check.equal(get(response("zstd", packers.zstd "hello " .. packers.zstd "world")):await().body, "hello world")
-- Without the frame of zlib.
check.equal(get(response("deflate", program("python3", "-c", PACK, "-15")(TEXT))):await().body, TEXT)
-- Several encodings, in the order in which they were applied.
check.equal(get(response("gzip, br", packers.br(packers.gzip(TEXT)))):await().body, TEXT)
check.equal(get(response("identity, zstd,gzip ", packers.gzip(packers.zstd(TEXT))), { size = 3 }):await().body, TEXT)
check.equal(get(response("gzip, gzip", packers.gzip(packers.gzip(TEXT):sub(1, -2)))).state, "failed")

-- An unknown encoding is left as it came, with its header; the encoding of a redirect or an error doesn't matter.
for _, encoding in ipairs { "utf-8", "aws-chunked", "none", "gzip, aws-chunked", "" } do
  local res = get(response(encoding, "abc", "Content-Length: 3\r\n")):await()
  check.equal(res.body, "abc")
  check.equal(res.headers["content-encoding"], encoding)
end
local target = server:raw "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
check.equal(get(("HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz"):format(target))
  :await().body, "abc")
local refused = get("HTTP/1.1 404 No\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz")
check.equal(refused.error.kind, "http")
check.equal(refused.error.status, 404)

-- A stream is decoded no further than it is read: 1 GB of brotli are 800 bytes.
local bomb = packers.br(("x"):rep(64 << 20))
assert(#bomb < 1000)
local result = require("host").run(require("host").binary, { "--memory-limit", "64M", "-e", ([[
  local res = require "flow".http { url = %q, stream = true }:await()
  local size, most = 0, 0
  for chunk in res:chunks() do size, most = size + #chunk, math.max(most, #chunk) end
  print(size, most < 1 << 20)]]):format(server:raw(response("br", bomb))) })
check.equal(result.stderr, "")
check.equal(result.stdout, "67108864\ttrue\n")

-- With resume a compressed content is decompressed, too, and begins from the start each time.
local id = servers.id()
local packed = packers.gzip(TEXT)
check.equal(#get(response("gzip", packed), { save = path, resume = true }):await().body, 0)
check.equal(flow.fs.read(path), TEXT)
flow.http { url = server:url("/echo", { id = id }), save = path, resume = true }:await()
check.equal(server:requests(id)[1].headers["accept-encoding"], "identity")
local lines = 'ETag: "x"\r\nContent-Length: 100\r\n'
check.equal(get(response("gzip", packed:sub(1, 50), lines), { save = path .. "2", resume = true }).state, "failed")
check.equal(flow.fs.exists(path .. "2.part.tag"), false)

-- Lengths that differ: nobody knows where the body ends.
local task = get "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 2\r\n\r\nabc"
check.equal(task.error.kind, "network")
check.contains(task.error.message, "several lengths of the body: 3, 2")
check.equal(get "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc":await().body, "abc")
