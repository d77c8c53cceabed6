-- A server whose certificate has expired, or is for another name, is refused with the reason by scripts and nodes.
-- clock: real: other processes execute the ops
local check, flow, host, remote = require "check", require "flow", require "host", require "remote"
local servers = require "servers"

local folder <close> = servers.folder()
local function openssl(...) flow.exec({ "openssl", ... }, { cwd = folder.path }):await() end
local function make(name, days, alternatives)
  flow.fs.write(folder .. "/names", "subjectAltName=" .. alternatives .. "\n")
  openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" .. name, "-keyout", name .. ".key", "-out", name .. ".csr")
  openssl("x509", "-req", "-in", name .. ".csr", "-out", name .. ".pem", "-CA", "ca.pem", "-CAkey", "ca.key",
    "-CAcreateserial", "-days", days, "-extfile", "names")
end
openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem")
make("good", "2", "IP:127.0.0.1")
make("expired", "-1", "IP:127.0.0.1")
make("other", "2", "DNS:elsewhere.example")

local op = [[
  local Op = flow.op("Op", { thread = "remote", gives = { r = "integer" }, run = function(ctx) ctx:set("r", 1) end })
  local run = flow.new("f"):add(Op):run()
  print(run.state, run.error and run.error.message)
]]
for _, case in ipairs {
  { "good" }, { "expired", "certificate has expired" }, { "other", "mismatch" },
} do
  local name, reason = table.unpack(case)
  local server <close> = remote.server {
    config = ("tls { cert_file: '%s/%s.pem', key_file: '%s/%s.key' }\n"):format(folder, name, folder, name),
  }
  server.url = server.url:gsub("^nats", "tls")
  server.environment = { SSL_CERT_FILE = folder .. "/ca.pem" }
  if not reason then
    server:join "m1"
    check.equal(server:run(op).stdout, "succeeded\tnil\n")
  else
    local result = server:run(op)
    check.equal(result.stderr, "")
    check.contains(result.stdout, "failed\t" .. server.url, "TLS failed: ", reason)
    result = host.run(host.binary, { "--join", server.url }, { environment = server.environment })
    check.equal(result.status, 1)
    check.contains(result.stderr, server.url .. ": TLS failed: ", reason)
  end
end
