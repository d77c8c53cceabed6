-- The client is a field of `flow` and the module `flow.http`, made at its first use; libcurl is loaded by a request.
-- clock: real: a server is outside
local check, servers = require "check", require "servers"

local function maps()
  local file <close> = io.open "/proc/self/maps"
  return file:read "a"
end
local flow = require "flow"
check.equal(rawequal(require "flow.http", flow.http), true)
check.equal(rawequal(flow.http, flow.http), true)
check.lacks(maps(), "libcurl")
local server <close> = servers.hostile()
check.equal(flow.http(server:url("/reply", { body = "x" })):await().body, "x")
check.contains(maps(), "libcurl")

-- Without any libcurl, an error names the package; one that links with GnuTLS serves as well.
local host = require "host"
local folder <close> = servers.folder()
-- A name server for libraries: one that isn't a library fails to load.
local function without(names)
  local words = {}
  for _, name in ipairs(names) do
    local file <close> = assert(io.open(folder .. "/" .. name, "w"))
    file:write "no library"
  end
  local result = host.script(([[
    local flow = require "flow"
    local task = flow.http(%q)
    task:wait()
    print(task.state == "succeeded" and task.result.body or task.error.message)
  ]]):format(server:url("/reply", { body = "fetched" })), {}, { environment = { LD_LIBRARY_PATH = folder.path } })
  check.equal(result.stderr, "")
  return result.stdout
end
check.contains(without { "libcurl.so.4", "libcurl-gnutls.so.4" }, "libcurl", "apt install libcurl4")
