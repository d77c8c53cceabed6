-- The tree says which steps and items are kept, and estimates the rest without them.
-- python: pyte
-- clock: real: the terminal is another program
local check, flow, terminal = require "check", require "flow", require "terminal"

local store = flow.fs.temp_dir()
local session = terminal.start([[
  local LoadOp = flow.op("LoadOp", { cache = true, needs = {}, run = function(ctx) ctx:set("loaded", 1) end })
  local ItemOp = flow.op("ItemOp", { cache = true, needs = { item = "integer" }, gives = { out = "integer" },
    run = function(ctx)
      if ctx:get "item" > 40 then pause(1) end
      if ctx:get "item" > 41 then pause(2) end
      ctx:set("out", ctx:get "item")
    end })
  local list = {}
  for i = 1, 40 do list[i] = i end
  local work = flow.new("work"):add(LoadOp)
    :add_grouped(ItemOp, { input = "list", output = "outs", as = "item", max_concurrent = 1 })
  work:run { list = list }
  list[41], list[42] = 41, 42
  work:run { list = list }
]], { options = { "--keep", "--store", store } })
local text = session:expect "40/42 95%% 1 running, 0 failed, 40 kept, [%dm ]+s\n"
check.contains(text, "├─ ✓ LoadOp kept\n")
session:go(1)
session:expect "41/42 98%% 1 running, 0 failed, 40 kept"
session:go(2)
local status
text, status = session:finish()
check.equal(status, 0)
check.contains(text, "✓ work/ItemOp 42/42 in ")
check.contains(text, "s, 40 kept")
flow.fs.remove(store, { recursive = true })
