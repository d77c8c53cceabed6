-- Lines that ops print in parallel workers, and the script beside them, aren't mixed.
-- clock: real: several threads print
local check, host = require "check", require "host"

local result = host.script([[
  local flow = require "flow"
  local PrintOp = flow.op("PrintOp", { needs = { i = "integer" }, thread = "worker", run = function(ctx)
    for k = 1, 5000 do print("line", ctx:get "i", k, "of", 5000, "", true, nil, {} ~= nil, 0.5, "end") end
  end })
  local run = flow.new("p"):data { items = { 1, 2, 3, 4 } }:add_grouped(PrintOp, { input = "items", max_concurrent = 4 }):start()
  repeat
    for k = 1, 100 do print("main", k, "end") end
    flow.sleep(0)
  until run.state ~= "pending"
  print(run.ok)
]], {}, { before = { "--workers", "4" } })
check.equal(result.stderr, "")
local counts = { line = 0, main = 0, ["true"] = 0 }
for line in result.stdout:gmatch "[^\n]*\n" do
  local word = line:match "^(line)\t[1-4]\t%d+\tof\t5000\t\ttrue\tnil\ttrue\t0%.5\tend\n$" or line:match "^(main)\t%d+\tend\n$"
    or line:match "^(true)\n$"
  check.equal(word ~= nil, true, ("%q"):format(line))
  counts[word] = counts[word] + 1
end
check.equal(counts.line, 20000)
check.equal(counts["true"], 1)
check.equal(counts.main > 0, true)

-- A metamethod that raises leaves the text before it, as lua5.4 does; long texts are printed whole.
host.same_script [[
  local bad = setmetatable({}, { __tostring = function() error "no text" end })
  print(pcall(print, "before", bad))
  print(setmetatable({}, { __name = "Named" }) ~= nil, setmetatable({}, { __tostring = function() return "shown" end }))
  print(#("x"):rep(100000), ("x"):rep(100000), 1, 2.5, -0.0, 1e100, nil, false)
  print()
  print(pcall(print, setmetatable({}, { __tostring = function() return 1 end })))
]]
