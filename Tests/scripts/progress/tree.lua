-- On a terminal the runs are shown as a tree below all other output; failures and groups that have ended leave lines.
-- python: pyte
-- clock: real: the terminal is another program
local check, terminal = require "check", require "terminal"

local script = [[
  local UploadOp = flow.op("UploadOp", { needs = { image = "integer" }, run = function(ctx)
    if ctx.index == 2 then pause(1) error("no\n\27[31msecond line") end
    if ctx.index > 37 then pause(2) end
  end })
  local PrepareOp = flow.op("PrepareOp", function() end)
  local CountOp = flow.op("CountOp", function(ctx) ctx:progress(1.5, 6) pause(3) end)
  local images = {}
  for i = 1, 120 do images[i] = i end
  flow.new("signup"):data { images = images }:add(PrepareOp)
    :add_grouped(UploadOp, { input = "images", max_concurrent = 3, allow_failure = true,
      label = function(image) return "image" .. image end })
    :add(CountOp):run()
  print "over"
]]
local session = terminal.start(script)
local text = session:expect("UploadOp ████▌░░░░░░░░░░ 36/120 30%% 3 running, 0 failed", "#2 image2 [%dm ]+s")
check.contains(text, "signup 1/3 ", "├─ ✓ PrepareOp 0.0s\n└─ UploadOp ")
session:go(1)
text = session:expect("37/120 31%% 3 running, 1 failed")
check.contains(text, "signup/UploadOp #2 image2 failed: ", "no\n\\x1B[31msecond line\nsignup 1/3 ",
  "└─ UploadOp ████▌░░░░░░░░░░ 37/120 31% 3 running, 1 failed")
session:go(2)
text = session:expect "CountOp ███▌░░░░░░░░░░░ 1.5/6 25%% [%dm ]+s, [%dm ]+s left"
check.contains(text, "second line\n✗ signup/UploadOp 120/120 in ", ", 1 failed\nsignup 2/3 ")
session:go(3)
local status
text, status = session:finish()
check.equal(status, 0)
-- Only the lines that stay.
local lines = {}
for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
assert(lines[1]:find "^signup/UploadOp #2 image2 failed: .*script.lua:%d+: no$", text)
check.equal(lines[2], "\\x1B[31msecond line")
assert(lines[3]:find "^✗ signup/UploadOp 120/120 in %d.*s, 1 failed$", text)
check.equal(lines[4], "over")
check.equal(#lines, 4)

-- Colours only where they are wanted.
local function colors(options)
  local shown = terminal.start([[
    flow.op("CountOp", function(ctx) ctx:progress(1, 2) pause(1) end):run()
  ]], options)
  shown:expect "CountOp .* 50%%"
  local found = {}
  for _, names in ipairs(shown.state.colors) do
    for _, name in ipairs(names) do found[#found + 1] = name end
  end
  shown:go(1)
  shown:finish()
  return table.concat(found, " ")
end
check.equal(colors(), "green")
check.equal(colors { environment = { NO_COLOR = "1" } }, "")
check.equal(colors { environment = { NO_COLOR = "1" }, options = { "--color=always" } }, "green")
check.equal(colors { options = { "--color=never" } }, "")
