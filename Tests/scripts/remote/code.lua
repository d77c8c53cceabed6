-- Functions travel with their upvalues and with the modules in Lua that their file requires; a node needs no file of the script.
-- clock: real: other processes execute the ops
local check = require "check"
local remote = require "remote"
local servers = require "servers"

local folder <close> = servers.folder()
local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "w"))
  file:write(text)
  file:close()
end
write("shapes_of_test.lua", [[
  local inner = require "inner_of_test"
  local Shape = {}
  Shape.__index = Shape
  function Shape.new(n) return setmetatable({ n = n }, Shape) end
  function Shape:area() return inner.square(self.n) end
  return Shape
]])
write("inner_of_test.lua", "return { square = function(n) return n * n end }")
write("late_of_test.lua", "return 'late'")
write("broken_of_test.lua", "return return")
-- It is found by its name, and never loaded.
write("native_of_test.so", "")
write("outer_of_test.lua", "return require 'native_of_test'")

local server <close> = remote.server()
server:join "m1"
local result = server:run(([[
  package.path = "%s/?.lua;" .. package.path
  local Shape = require "shapes_of_test"
  local Op = flow.op("AreaOp", {
    needs = { shape = "any" }, gives = { area = "integer", late = "string" }, thread = "remote", primary_output = "area",
    run = function(ctx)
      ctx:set("area", ctx:get "shape":area() + Shape.new(1):area())
      ctx:set("late", require "late_of_test")
      assert(not io.open "%s/never", "no file")
    end,
  })
  local run = flow.new("area"):data { shape = Shape.new(3) }:add(Op):run()
  print(run.state, run.error, run.data.area, run.data.late)
  local Broken = flow.op("BrokenOp", { thread = "remote", run = function() require "broken_of_test" end })
  print(flow.new("broken"):add(Broken):run().error.message)
  local Missing = flow.op("MissingOp", { thread = "remote", run = function() require("missing" .. "_of_test") end })
  local message = flow.new("missing"):add(Missing):run().error.message
  print(message:match "^[^\n]+" .. message:match "\n[^\n]*'m1'")
  package.cpath = "%s/?.so;" .. package.cpath
  local Native = flow.op("NativeOp", { thread = "remote", run = function() require "outer_of_test" end })
  message = flow.new("native"):add(Native):run().error.message
  print(message:match "^[^\n]+" .. message:match "\n[^\n]*'m1'")
  -- A large value goes through the store of objects, both ways.
  local Big = flow.op("BigOp", { needs = { text = "string" }, gives = { back = "string" }, thread = "remote",
    run = function(ctx)
      ctx:set("back", ctx:get "text" .. "!")
      -- The end of the op is a report of its own, which comes before the value is there.
      require "flow".sleep(0.005)
    end })
  local text = ("x"):rep(3000000)
  local run = flow.new("big"):data { text = text }:add(Big):run()
  print(run.state, run.data.back == text .. "!")
]]):format(folder.path, folder.path, folder.path))
check.equal(result.stderr, "")
check.match(result.stdout, "^succeeded\tnil\t10\tlate\n")
check.match(result.stdout, "broken_of_test.lua:1: ")
check.match(result.stdout, "\n[^\n]*module 'missing_of_test' not found[^\n]*\n" ..
  "\tnot sent with the op, and not on the node 'm1'\n[^\n]*module 'native_of_test' not found[^\n]*\n" ..
  "\ta module in C isn't sent with the op: install it on the node 'm1'\nsucceeded\ttrue\n$")
check.equal(result.status, 0)
