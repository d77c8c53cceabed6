-- Nothing of the output is lost where another program has made its pipe refuse what it can't take at once.
-- clock: real: the reader is another program
local check, host, flow = require "check", require "host", require "flow"

local reader = [[
import os, sys, fcntl, subprocess, time
r, w = os.pipe()
fcntl.fcntl(w, fcntl.F_SETFL, fcntl.fcntl(w, fcntl.F_GETFL) | os.O_NONBLOCK)
streams = dict(stdout=w) if sys.argv[1] == "stdout" else dict(stderr=w)
p = subprocess.Popen(sys.argv[2:], **streams)
os.close(w)
time.sleep(0.2)
count = 0
while True:
  data = os.read(r, 20000)
  if not data: break
  count += data.count(b"\n")
print(count, p.wait())
]]
for stream, script in pairs {
  stdout = "for i = 1, 100000 do print(i) end",
  stderr = "for i = 1, 100000 do io.stderr:write(i, '\\n') end",
} do
  check.equal(flow.exec { "python3", "-c", reader, stream, host.binary, "-e", script }:await().stdout, "100000 0\n", stream)
end
local tee = [[require "flow".exec({ "seq", "1", "100000" }, { tee = true }):await()]]
check.equal(flow.exec { "python3", "-c", reader, "stdout", host.binary, "-e", tee }:await().stdout, "100000 0\n")
