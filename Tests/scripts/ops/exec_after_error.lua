-- A script that ends by an error takes the programs that still run with it.
local host, check = require "host", require "check"
local marker = ("41.%d"):format(os.time())
local result = host.script([[
  local flow = require "flow"
  flow.ops.ExecOp({ "sleep", "]] .. marker .. [[" }):start()
  error("over")
]])
check.equal(result.status, 1)
check.contains(result.stderr, "over")
local list <close> = io.popen("grep -lsa '^sleep.*" .. marker .. "' /proc/[0-9]*/cmdline")
check.equal(list:read("a"), "")
