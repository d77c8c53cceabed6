-- Groups within groups find the data of the outermost flow at any depth, and see it change.
local flow, check = require "flow", require "check"
local depth, seen = 3000, {}
local last = flow.op("LeafOp", function(ctx) seen[#seen + 1] = ctx:get "word" end)
for level = 1, depth do
  local Inner = last
  last = flow.new("level" .. level):add_grouped(Inner, flow.dispatcher { input = "items", as = "item" })
  if level % 500 == 0 then
    last:add(flow.op("ReadOp", function(ctx) seen[#seen + 1] = ctx:get "word" ctx:set("word", level) end))
  end
end
local outer = flow.new("outer"):data { items = { 1 }, word = "first" }:add(last)
local run = outer:run()
assert(run.ok, run.error)
check.same(seen, { "first", "first", "first", "first", "first", "first", "first" })
check.equal(run.data.word, 3000)
