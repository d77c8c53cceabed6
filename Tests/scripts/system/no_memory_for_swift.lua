-- Without memory for Swift the program ends with a sentence and status 1 and loses no output.
-- Data that scripts keep in the engine is in Swift's memory.
local host, check = require "host", require "check"
-- A debug build has the runtime as a shared library, which ends the process by itself.
if io.popen("ldd '" .. host.binary .. "'"):read("a"):find("libswiftCore", 1, true) then
  return check.skip "a debug build has the runtime as a shared library"
end
local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write [[
  local flow = require "flow"
  print "begun"
  flow.op("KeepOp", function(ctx)
    for i = 1, math.huge do ctx:set("key" .. i, ("x"):rep(100000) .. i) end
  end):run()
]]
file:close()
local result = host.run("sh", {
  "-c", "ulimit -c 0; ulimit -v 120000; exec \"$0\" \"$1\"", host.binary, path,
})
os.remove(path)
check.equal(result.stderr, host.binary .. ": not enough memory for the program itself\n")
check.equal(result.stdout, "begun\n")
check.equal(result.status, 1)
