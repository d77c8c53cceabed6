-- Over cables that delay each packet by 50 ms and lose 1 %, three nodes execute each item once.
-- clock: real: other processes execute the ops
local check, flow, network, remote = require "check", require "flow", require "network", require "remote"

local names = { "m1", "m2", "m3" }
local net <close> = network.enter({ "queue", "script", "m1", "m2", "m3" }, names)
if not net then return end
local server <close> = remote.server { network = net }
local joining = {}
for k, name in ipairs(names) do joining[k] = flow.spawn(function() server:join(name) end) end
flow.when_all_succeed(joining):await()

-- 100 KB there and back are 70 packets in each direction: some are lost.
local result = server:run(([[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer", text = "string", notes = "string" }, gives = { back = "string" }, thread = "remote",
    run = function(ctx)
      local file = assert(io.open(ctx:get "notes", "a"))
      file:write(ctx:get "n", "\n")
      file:close()
      require "flow".sleep(0.05)
      ctx:set("back", ctx:get "text" .. ctx:get "n")
    end,
  })
  local list = {}
  for k = 1, 30 do list[k] = k end
  local text = ("x"):rep(100000)
  local run = flow.new("work"):data { ns = list, text = text, notes = %q }
    :add_grouped(Op, { input = "ns", as = "n", output = "backs", max_concurrent = 6 }):run()
  local good, lanes, names = 0, {}, {}
  for k, back in ipairs(run.data.backs or {}) do if back == text .. k then good = good + 1 end end
  for _, event in ipairs(run:events()) do
    if event.kind == "finish" and event.index > 0 then lanes[event.lane:match "^%%w+"] = true end
  end
  for name in pairs(lanes) do names[#names + 1] = name end
  table.sort(names)
  print(run.state, run.error, good, table.concat(names, " "))
]]):format(server.folder .. "/notes"))
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t30\tm1 m2 m3\n")
local begun = {}
for line in io.lines(server.folder .. "/notes") do
  check.equal(begun[line], nil, "item " .. line .. " is executed twice")
  begun[line] = true
end
