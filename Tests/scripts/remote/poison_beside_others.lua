-- An op beside one that ends the processes of its nodes isn't lost with it: it executes again elsewhere.
-- clock: real: other processes execute the ops, and leases end
local check, remote = require "check", require "remote"

local server <close> = remote.server()
for k = 1, 4 do server:join("box" .. k, "--workers", "4") end
-- The last one ends its node once the others have begun there.
local result = server:run [[
  local GoodOp = flow.op("GoodOp", { thread = "remote", needs = { n = "integer" }, run = function(ctx)
    local n = ctx:get "n"
    require "flow".sleep(1)
    if n == 4 then os.execute "kill -9 $PPID" end
    require "flow".sleep(0.5)
  end })
  local run = flow.new("f"):add_grouped(GoodOp, { input = "list", allow_failure = true }):run { list = { 1, 2, 3, 4 } }
  for _, event in ipairs(run:events()) do
    if event.kind == "finish" and event.index > 0 then print(event.index, (event.message:match "^[%w: ]+")) end
  end
]]
check.equal(result.stderr, "")
local lines = {}
for line in result.stdout:gmatch "[^\n]+" do lines[#lines + 1] = line end
table.sort(lines)
check.equal(table.concat(lines, "\n"), "1\tsuccessfully\n2\tsuccessfully\n3\tsuccessfully\n"
  .. "4\twithError: its node was lost 3 times: ")
