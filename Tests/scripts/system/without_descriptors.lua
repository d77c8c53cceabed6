-- Without free descriptors, functions that need one raise an error, and the script can continue.
local host, check = require "host", require "check"
local function limited(text)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write([[
    local held = {}
    function hold() repeat held[#held + 1] = io.open("/dev/null") until not io.open("/dev/null") end
    function free(count) for _ = 1, count do table.remove(held):close() end end
  ]], text)
  file:close()
  -- Not with those that the caller of the tests has left open.
  local command = [[
    for held in /proc/$$/fd/*; do
      held=${held##*/}
      if ((held > 2)); then exec {held}>&-; fi
    done
    ulimit -n 32
    exec timeout 20 "$0" "$1"]]
  local result = host.run("bash", { "-c", command, host.binary, path })
  os.remove(path)
  check.equal(result.stderr, "")
  check.equal(result.status, 0)
  return result.stdout
end

local no_loop = "an event loop has no descriptor to be woken by: Too many open files"
check.contains(limited [[
  hold()
  local ok, problem = pcall(require, "flow")
  print(ok, problem)
  free(3)
  print(require("flow").op("AnOp", function() end):run().ok)
]], "false", no_loop, "\ntrue\n")

check.contains(limited [[
  local flow, testing = require "flow", require "flow.testing"
  local op = flow.op("AnOp", function(ctx) flow.sleep(1) ctx:set("x", 1) end)
  hold()
  local ok, problem = pcall(testing.run, op)
  print(ok, problem.kind, problem.code, problem)
  free(3)
  print(testing.run(op).data.x)
]], "false\terror\t24\t", ":7: " .. no_loop, "\n1\n")

-- An op in a worker, a group in workers, a program and a test within an op.
check.equal(limited [[
  local flow, testing = require "flow", require "flow.testing"
  local op = flow.op("WorkOp", { thread = "worker", run = function() end })
  local group = flow.new("all"):data { items = { 1, 2, 3 } }:add_grouped(
    flow.op("ItemOp", { needs = { n = "integer" }, thread = "worker", run = function() end }),
    flow.dispatcher { input = "items", as = "n" })
  local test = flow.op("TestOp", function() testing.run(flow.op("AnOp", function() end)) end)
  local exec = flow.op("ExecOp", function() flow.exec { "true" }:await() end)
  hold()
  for _, each in ipairs { op, group, test, exec } do
    local run = each:run()
    assert(tostring(run.error):find("Too many open files", 1, true), run.error)
  end
  free(8)
  for _, each in ipairs { op, group, test, exec } do
    local run = each:run()
    if run.error then print(run.error) end
  end
  print "done"
]], "done\n")
