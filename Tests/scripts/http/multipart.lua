-- Forms with files, and encodings of forms and queries, are sent as curl sends them.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local folder <close> = servers.folder()
local json = flow.json

local function write(name, text)
  local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(text)
  return folder .. "/" .. name
end
local picture = write("a.png", "\137PNG\r\n\26\n\0\255")
local odd = write('odd "name" ä.txt', "text\r\n--\r\n")
local big = write("big.bin", ("b"):rep(100000))

-- Body and type without the boundary, which is drawn at random, and without what only names the client.
local function comparable(seen)
  local boundary = seen.headers["content-type"]:match "boundary=(%S+)"
  local text = (seen.hex or ""):gsub("%x%x", function(hex) return string.char(tonumber(hex, 16)) end)
  if boundary then text = text:gsub(boundary:gsub("%p", "%%%0"), "BOUNDARY") end
  return (seen.headers["content-type"]:gsub("boundary=.*", "boundary=BOUNDARY")), text
end
local function same(request, ...)
  request.url = server:url "/echo"
  local kind, text = comparable(flow.http(request):await():json())
  local expected_kind, expected = comparable(json.decode(servers.curl(request.url, ...)))
  check.equal(kind, expected_kind)
  check.equal(text, expected)
end

same({ files = { photo = { path = picture, type = "image/png" } } }, "-F", "photo=@" .. picture .. ";type=image/png")
same({ files = { photo = { path = picture } } }, "-F", "photo=@" .. picture)
same({ files = { one = { path = picture, name = "other.gif", type = "image/gif" } } },
  "-F", "one=@" .. picture .. ";filename=other.gif;type=image/gif")
-- Fields of the form come first, sorted; then files, sorted.
same({ form = { b = "2", a = "1 & ä" }, files = { f = { path = picture, type = "image/png" } } },
  "-F", "a=1 & ä", "-F", "b=2", "-F", "f=@" .. picture .. ";type=image/png")
same({ files = { odd = { path = odd, type = "text/plain" } } },
  "-F", 'odd=@"' .. odd:gsub('"', '\\"') .. '";type=text/plain')
same({ files = { data = { body = "from memory", name = "m.txt", type = "text/plain" } } },
  "-F", "data=from memory;filename=m.txt;type=text/plain")
same({ files = { data = "from memory" } }, "-F", "data=from memory;filename=data")
same({ files = { list = { { body = "1", name = "a" }, { body = "2", name = "b" } } } },
  "-F", "list=1;filename=a", "-F", "list=2;filename=b")

-- A large file is streamed: what arrives is the file.
local seen = flow.http { url = server:url "/echo", files = { big = { path = big, type = "a/b" } } }:await():json()
check.equal(seen.length > 100000, true)
check.equal(tonumber(seen.headers["content-length"]), seen.length)

-- Forms and queries, encoded as curl does it.
for _, text in ipairs { "plain", "a b", "a+b", "ä€", "&=?#/%;:@,$!*'()~-_.", "\n\r\t\1", "" } do
  local id, other = servers.id(), servers.id()
  flow.http { url = server:url("/echo", { id = id }), form = { field = text }, query = { q = text } }:await()
  servers.curl(server:url("/echo", { id = other }), "--data-urlencode", "field=" .. text)
  -- curl writes a space as a plus, which means the same.
  check.equal(server:requests(id)[1].body, (server:requests(other)[1].body:gsub("%+", "%%20")))
  servers.curl("-G", server:url("/echo", { id = other }), "--data-urlencode", "q=" .. text)
  local query = server:requests(other)[2].raw_query:match "&(q=.*)":gsub("%+", "%%20"):gsub("%%%x%x", string.upper)
  check.equal(server:requests(id)[1].raw_query:match "&(q=.*)", query)
end
