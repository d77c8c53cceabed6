-- Nodes and the server are killed or stand still at random moments: all items come back as they should, and no program is left.
-- clock: real: other processes execute the ops, and leases end
--
--   chaos.lua [COUNT [SEED]]     that many kills, 4 by default, of 20 items each, at moments drawn from a seed
local check, flow, remote = require "check", require "flow", require "remote"

local count = math.tointeger(arg[1] or 4)
local seed = math.tointeger(arg[2] or os.time())
math.randomseed(seed)
local items, marker = count * 20, "chaos-" .. seed

local server <close> = remote.server()
local nodes, joined = {}, 0
local function join(place)
  joined = joined + 1
  nodes[place] = server:join("m" .. joined)
end
for place = 1, 3 do join(place) end

-- Each item notes that it begins, and its program would outlast it by an hour if nothing ended it.
local script = server:start(([[
  local ITEMS, MARKER, NOTES = %d, %q, %q
  local Op = flow.op("WorkOp", {
    needs = { n = "integer", marker = "string", notes = "string" }, gives = { square = "integer" },
    thread = "remote", retry = 3,
    run = function(ctx)
      local flow = require "flow"
      local n, file = ctx:get "n", assert(io.open(ctx:get "notes", "a"))
      file:write(n, "\n")
      file:close()
      if n %% 5 == 0 then
        flow.exec({ "sh", "-c", "sleep 3600", ctx:get "marker" }, { timeout = 0.1, check = false })
          :next(function() end):await()
      else
        flow.sleep(0.1)
      end
      ctx:set("square", n * n)
    end,
  })
  local list = {}
  for k = 1, ITEMS do list[k] = k end
  local run = flow.new("work"):data { ns = list, marker = MARKER, notes = NOTES }
    :add_grouped(Op, { input = "ns", as = "n", output = "squares", max_concurrent = 6 }):start()
  report()
  run:wait()
  local good = 0
  for k, square in ipairs(run.data.squares or {}) do if square == k * k then good = good + 1 end end
  print(run.state, run.error, good)
]]):format(items, marker, server.folder .. "/notes"))
server:wait_for_report(script)

local log = {}
local function note(...) log[#log + 1] = table.concat({ ("%.2f"):format(flow.now()), ... }, " ") end
for _ = 1, count do
  flow.sleep(0.1 + math.random() * 0.4)
  if script.state ~= "pending" then break end
  local place, kind = math.random(#nodes), math.random(10)
  local node = nodes[place]
  if kind <= 7 then
    note("kill", node.name)
    node:signal "KILL"
    join(place)
  elseif kind <= 9 then
    note("stop", node.name)
    node:signal "STOP"
    flow.spawn(function()
      flow.sleep(math.random() * 7)
      pcall(node.signal, node, "CONT")
    end)
  else
    note("kill the server")
    server:kill()
    flow.sleep(math.random() * 0.3)
    server:restart()
  end
end

local result = script:await()
local story = ("from seed %d:\n%s\n%s"):format(seed, table.concat(log, "\n"), result.stderr)
check.equal(result.stdout, ("succeeded\tnil\t%d\n"):format(items), story)

-- Items in flight at a kill execute again, and nothing else: at most the slots of a node, or all when the server was killed.
local begun = 0
for _ in io.lines(server.folder .. "/notes") do begun = begun + 1 end
check.equal(begun >= items and begun <= items + count * 6, true, begun .. " of " .. items .. " items " .. story)

for _, node in pairs(nodes) do
  pcall(node.signal, node, "CONT")
  node:signal "TERM"
  node:wait()
end
-- The process that kills the programs of a killed node needs a moment.
local left
for _ = 1, 200 do
  left = flow.exec({ "pgrep", "-f", "sleep 3600 " .. marker }, { check = false }):await().stdout
  if left == "" then break end
  flow.sleep(0.05)
end
check.equal(left, "", story)
print(("%d kills, %d of %d items executed again, from seed %d"):format(#log, begun - items, items, seed))
