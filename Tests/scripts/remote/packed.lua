-- Short jobs share messages: a long one among them delays no other, and none is lost with a machine.
-- clock: real: other processes execute the ops, and leases end
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join("m1", "--workers", "1")
server:join("m2", "--workers", "1")

-- How many messages with jobs there were.
local function message_count()
  local reply = server:request "$JS.API.STREAM.INFO.FLOWLUA_WORK"
  return math.tointeger(tonumber(reply:match '"last_seq":(%d+)'))
end

-- `act` is called for each of 1,000 items; the first 100 take as long as is needed to learn that they are short.
local function script(act, after)
  return ([[
    local flow = require "flow"
    local Op = flow.op("Op", {
      thread = "remote", needs = { n = "integer", folder = "string" }, gives = { square = "integer" },
      run = function(ctx)
        local n, folder = ctx:get "n", ctx:get "folder"
        %s
        ctx:set("square", n * n)
      end,
    })
    local list = {}
    for n = 1, 1000 do list[n] = n end
    local function start()
      return flow.new("f"):data { list = list, folder = %q }:add_grouped(Op, {
        input = "list", as = "n", output = "squares", max_concurrent = 200, allow_failure = true }):start()
    end
    local run = start()
    %s
    run:wait()
    -- In the order of the items, without those that failed.
    local good, squares = 0, {}
    for _, square in ipairs(run.data.squares or {}) do squares[square] = true end
    for n = 1, 1000 do if squares[n * n] then good = good + 1 end end
    print(run.state, good, #run.data.squares)
  ]]):format(act, tostring(server.folder), after or "")
end

local result = server:run(script "")
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\t1000\t1000\n")
local short = message_count()
check.equal(short < 500, true, short)

-- Items that fail.
result = server:run(script "if n % 10 == 0 then error('no ' .. n) end")
check.equal(result.stdout, "succeeded\t900\t900\n")

-- Item 900 keeps its worker until all others have ended. (The group's messages are about items.)
local long = server:start(script([[
  if n == 900 then
    local done
    repeat done = io.open(folder .. "/done") until done
    done:close()
  end
]], [[
  local ended = 0
  repeat
    flow.sleep(0.01)
    ended = 0
    for _, event in ipairs(run:events()) do
      if event.kind == "finish" and event.op == "Op" then ended = ended + 1 end
    end
  until ended == 999
  flow.fs.write(run.data.folder .. "/done", "")
]]))
result = long:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\t1000\t1000\n")

-- A stop reaches those that are busy, those that wait for them, and those that no machine has.
result = server:run(([[
  local flow, folder = require "flow", %q
  local Op = flow.op("Op", {
    thread = "remote", needs = { n = "integer", folder = "string" },
    run = function(ctx)
      if ctx:get "n" <= 100 then return end
      io.open(ctx:get "folder" .. "/busy" .. ctx:get "n", "w"):close()
      while true do end
    end,
  })
  local list = {}
  for n = 1, 1000 do list[n] = n end
  local run = flow.new("f"):data { list = list, folder = folder }
    :add_grouped(Op, { input = "list", as = "n", max_concurrent = 200 }):start()
  repeat flow.sleep(0.01) until #flow.fs.list(folder, { match = "busy*" }) == 2
  run:cancel()
  run:wait()
  print(run.state)
]]):format(tostring(server.folder)))
check.equal(result.stdout, "cancelled\n")

-- One that ends its machine while others wait for it there: all are executed by others.
result = server:run(script [[
  if n == 900 and not io.open(folder .. "/killed") then
    io.open(folder .. "/killed", "w"):close()
    os.execute "kill -9 $PPID"
  end
]])
check.equal(result.stdout, "succeeded\t1000\t1000\n")
