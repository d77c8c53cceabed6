-- Uses a C module of each group of Debian's packages: flowlua modules.lua
--
-- The modules call liblua by the dynamic linker, so they show whether the program has all of it
-- under the right names. Each is used on the main thread, within a flow, and in a worker; functions
-- of Lua that a module calls wait by `flow.sleep`, where the module lets them. Where a server would
-- be needed, the error of the connection is what comes back. Prints a line for each; the first
-- failure ends it.
local flow = require "flow"

-- Calls a function that waits; what it returns passes through the module.
local function waits(...)
  flow.sleep(0.001)
  return ...
end

local uses = {}

function uses.bitop()
  local bit = require "bit"
  assert(bit.tohex(bit.bxor(0xff, 0x0f)) == "000000f0")
end

function uses.cjson()
  local cjson = require "cjson"
  local text = cjson.encode { list = { 1, 2.5, "a" }, none = cjson.null }
  local value = cjson.decode(text)
  assert(value.list[2] == 2.5 and value.none == cjson.null)
  assert(not pcall(cjson.decode, "{"))
end

function uses.cqueues()
  local cqueues = require "cqueues"
  local queue, order = cqueues.new(), {}
  for i = 2, 1, -1 do
    queue:wrap(function()
      cqueues.sleep(i / 1000)
      order[#order + 1] = i
    end)
  end
  assert(queue:loop())
  assert(#order == 2)
end

function uses.cyrussasl()
  assert(require "cyrussasl".get_version():find "^%d")
end

function uses.dbi()
  local made = assert(require "dbd.sqlite3".New(":memory:"))
  local statement = assert(made:prepare "select 20 + ?")
  assert(statement:execute(22))
  assert(statement:fetch()[1] == 42)
  made:close()
  assert(not require "dbd.postgresql".New("x", "x", "x", "127.0.0.1", 1))
  assert(not require "dbd.mysql".New("x", "x", "x", "127.0.0.1", 1))
end

function uses.event()
  local core = require "luaevent.core"
  local base, calls = core.new(), 0
  local event = base:addevent(nil, core.EV_TIMEOUT, function()
    calls = calls + 1
    return -1
  end, 0.001)
  base:loop()
  event:close()
  assert(calls == 1)
end

function uses.expat()
  local names = {}
  local parser = require "lxp".new {
    StartElement = function(_, name) names[#names + 1] = waits(name) end,
  }
  assert(parser:parse "<a><b/></a>")
  parser:close()
  assert(table.concat(names, " ") == "a b")
end

function uses.filesystem()
  local lfs = require "lfs"
  assert(lfs.attributes("/", "mode") == "directory")
  local count = 0
  for _ in lfs.dir "/" do count = count + 1 end
  assert(count > 2)
end

function uses.geoip()
  assert(not require "geoip.country".open "/nowhere")
  assert(not require "geoip.city".open "/nowhere")
end

function uses.ldap()
  local connection, message = require "lualdap".open_simple("127.0.0.1:1", "", "", false, 1)
  assert(not connection and message)
end

function uses.lpeg()
  local lpeg = require "lpeg"
  local number = lpeg.R "09" ^ 1 / function(text) return waits(tonumber(text)) end
  assert(lpeg.match(lpeg.Ct(number * ("," * number) ^ 0), "1,22,333")[3] == 333)
end

function uses.luaossl()
  local digest = require "openssl.digest".new "sha256"
  assert(#digest:final "text" == 32)
end

function uses.luv()
  local uv = require "luv"
  local timer, calls = uv.new_timer(), 0
  timer:start(1, 0, function()
    timer:close()
    calls = calls + 1
  end)
  uv.run()
  assert(calls == 1)
end

function uses.readline() assert(require "readline".set_options {} ~= false) end

function uses.rex()
  for _, name in ipairs { "gnu", "onig", "pcre2", "posix", "tre" } do
    local rex = require("rex_" .. name)
    local text = rex.gsub("a1b22", "[0-9]+", function(found) return waits("<" .. found .. ">") end)
    assert(text == "a<1>b<22>", name)
  end
end

function uses.sec()
  local context = assert(require "ssl".newcontext { mode = "client", protocol = "any" })
  assert(context)
  assert(not require "ssl".newcontext { mode = "client", protocol = "none" })
end

function uses.socket()
  local socket = require "socket"
  local server = assert(socket.bind("127.0.0.1", 0))
  local address, port = server:getsockname()
  local client = assert(socket.connect(address, port))
  local other = assert(server:accept())
  client:send "a line\n"
  assert(other:receive() == "a line")
  assert(require "mime".b64 "text" == "dGV4dA==")
  client:close()
  other:close()
  server:close()
end

function uses.sql()
  local environment = require "luasql.sqlite3".sqlite3()
  local made = assert(environment:connect ":memory:")
  assert(made:execute "create table t (a)")
  assert(made:execute "insert into t values (42)" == 1)
  local cursor = assert(made:execute "select a from t")
  assert(cursor:fetch() == 42)
  cursor:close()
  made:close()
  environment:close()
  for _, name in ipairs { "mysql", "postgres", "odbc" } do
    local other = require("luasql." .. name)[name]()
    assert(not other:connect("x", "x", "x", "127.0.0.1", 1))
    other:close()
  end
end

function uses.system() assert(require "system".gettime() > 1e9) end

function uses.term() assert(require "term".isatty(io.stdin) ~= nil) end

function uses.unbound() assert(require "lunbound".new() ~= nil) end

function uses.yaml()
  local values = {}
  for event in require "yaml".parser "list: [1, two]" do values[#values + 1] = event.value end
  assert(table.concat(values, " ") == "list 1 two")
end

function uses.zlib()
  local zlib = require "zlib"
  local packed = zlib.deflate()(("text"):rep(1000), "finish")
  assert(zlib.inflate()(packed) == ("text"):rep(1000))
end

local names = {}
for name in pairs(uses) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local use = uses[name]
  use()
  for _, thread in ipairs { "main", "worker" } do
    local run = flow.new(name):add(flow.op("UseOp", { thread = thread, run = use })):run()
    assert(run.ok, run.error)
  end
  print(name)
end
