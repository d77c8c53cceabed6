-- Sent as the server needs it: one line of credentials and one of cookies, names and queries of any alphabet, numbers of no locale.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local host = require "host"

local function sent(client, options)
  local id = servers.id()
  client.get(server:url("/echo", { id = id }), options):await()
  return server:requests(id)[1].headers
end
-- The nearest credentials count; those of `auth` before a header of the same place.
local secret = flow.secret "of-auth"
local lines = { Authorization = "Bearer of-header" }
local function client(options)
  options.base = server:url ""
  options.base = options.base:gsub("^https", "http")
  return flow.http.client(options)
end
check.equal(sent(flow.http, { auth = secret, headers = lines }).authorization, "Bearer of-auth")
check.equal(sent(flow.http, { auth = { user = "u", password = "p" }, headers = lines }).authorization, "Basic dTpw")
check.equal(sent(flow.http.client { headers = lines }, { auth = secret }).authorization, "Bearer of-auth")
check.equal(sent(flow.http.client { headers = lines, auth = secret }).authorization, "Bearer of-auth")
check.equal(sent(flow.http.client { auth = secret }, { headers = lines }).authorization, "Bearer of-header")
check.equal(sent(flow.http, { headers = lines }).authorization, "Bearer of-header")

-- A jar and headers are one line.
local jar = flow.http.jar()
flow.http.get(server:url("/cookie", { set = "sid=1; Path=/" }), { cookies = jar }):await()
check.equal(sent(flow.http, { cookies = jar, headers = { Cookie = "x=y" } }).cookie, "sid=1; x=y")
check.equal(sent(flow.http, { cookies = jar, headers = { Cookie = { "x=y", "a=b" } } }).cookie, "sid=1; x=y; a=b")
check.equal(sent(flow.http, { headers = { Cookie = "x=y" } }).cookie, "x=y")
check.equal(sent(flow.http, { cookies = jar }).cookie, "sid=1")

-- Letters and spaces of a URL are encoded, once.
local function path(url)
  local id = servers.id()
  local base = server:url("/echo", { id = id })
  flow.http.get(base .. url):await()
  return server:requests(id)[1].raw_query:match "id=%w+(.*)"
end
check.equal(path "&q=café", "&q=caf%c3%a9")
check.equal(path "&q=a%20b&ü=1", "&q=a%20b&%c3%bc=1")
check.match(path "&q=a b", "&q=a[+%%]2?0?b")
check.equal(path "&q=x#fragment", "&q=x")

-- The part of a client's base after its path comes after the request's own.
local testing = require "flow.testing"
local function joined(base, url)
  local run = testing.run(flow.op("AOp", function(ctx)
    ctx:set("url", flow.http.client { base = base }.get(url):await().body)
  end), { http = function(request) return request.url end })
  return run.ok and run.data.url or run.error
end
for _, case in ipairs {
  { "http://h/v1?key=1", "items", "http://h/v1/items?key=1" }, { "http://h/v1/?key=1", "/items?n=2", "http://h/v1/items?key=1&n=2" },
  { "http://h?key=1", "items", "http://h/items?key=1" }, { "http://h/v1?key=1", "?n=2", "http://h/v1?key=1&n=2" },
  { "http://h/v1?key=1", "", "http://h/v1?key=1" }, { "http://h/v1", "items?n=2", "http://h/v1/items?n=2" },
  { "http://h/v1?a=?b", "x", "http://h/v1/x?a=?b" }, { "http://h/v1?", "x?", "http://h/v1/x" },
  { "http://h/v1#part", "x", "http://h/v1/x" }, { "http://h/v1?key=1", "http://other/x", "http://other/x" },
} do check.equal(joined(case[1], case[2]), case[3], case[1] .. " and " .. case[2]) end

-- Hosts with other letters are looked up by their name in ASCII; wrong ones are an error of use.
local task = flow.http { url = "http://user:p@bücher.invalid:81/", connect_timeout = 5 }
task:wait()
check.contains(task.error.message, "xn--bcher-kva.invalid:81")
task = flow.http { url = "http://ＦＡＳＳ.invalid/" }
task:wait()
check.contains(task.error.message, "fass.invalid")
check.raises(function() flow.http "http://a\u{300}\u{2028}.invalid/" end, "no URL")

-- Numbers are written in one way, whatever the locale of the script is.
local result = host.run("sh", { "-c", [[
  folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
  localedef -i de_DE -f UTF-8 "$folder/de_DE.UTF-8" 2>/dev/null || { echo "no locales"; exit; }
  LOCPATH=$folder "$0" -e "$1"]], host.binary, ([[
  assert(os.setlocale "de_DE.UTF-8")
  assert(tostring(1.5) == "1,5")
  local flow = require "flow"
  local body = flow.http { url = %q, query = { a = 1.5 }, headers = { ["X-Number"] = 2.5 }, form = { b = -0.25 } }:await().body
  print(body:find("a=1.5", 1, true) ~= nil, body:find("2.5", 1, true) ~= nil, body:find("b=-0.25", 1, true) ~= nil)
  print(flow.exec { "echo", 0.5, 1e100, 3.0 }:await().stdout)
  local run = flow.op("AOp", function(ctx) ctx:set("x", 1.5) end):run()
  print(run:summary():find("1.5", 1, true) ~= nil, run:summary():find("1,5", 1, true))]]):format(server:url("/echo")) })
check.equal(result.stderr, "")
if result.stdout == "no locales\n" then return check.skip "localedef has no sources of locales" end
check.equal(result.stdout, "true\ttrue\ttrue\n0.5 1e+100 3.0\n\ntrue\tnil\n")
