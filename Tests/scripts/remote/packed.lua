-- Short jobs share messages: a long one among them delays no other, and none is lost with a node.
-- clock: real: other processes execute the ops, and leases end
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join("m1", "--workers", "1")
server:join("m2", "--workers", "1")
local is_sanitized = os.getenv "FLOWLUA_SANITIZER"
local count = is_sanitized and 200 or 1000

-- How many messages with jobs there were.
local function message_count()
  local reply = server:request "$JS.API.STREAM.INFO.FLOWLUA_WORK"
  return math.tointeger(tonumber(reply:match '"last_seq":(%d+)'))
end

-- `act` is called for each item, `after` once they have started; `late` is an item near the end.
local function run(act, after)
  local result = server:run(([[
    local flow = require "flow"
    local count, late, folder = %d, %d, %q
    local Op = flow.op("Op", {
      thread = "remote", needs = { n = "integer", folder = "string" }, gives = { square = "integer" },
      run = function(ctx)
        local n, folder = ctx:get "n", ctx:get "folder"
        %s
        ctx:set("square", n * n)
      end,
    })
    local list = {}
    for n = 1, count do list[n] = n end
    local run = flow.new("f"):data { list = list, folder = folder }:add_grouped(Op, {
      input = "list", as = "n", output = "squares", max_concurrent = count // 5, allow_failure = true }):start()
    %s
    run:wait()
    -- In the order of the items, without those that failed.
    local good, squares = 0, {}
    for _, square in ipairs(run.data.squares or {}) do squares[square] = true end
    for n = 1, count do if squares[n * n] then good = good + 1 end end
    print(run.state, good, #(run.data.squares or {}))
  ]]):format(count, count * 9 // 10, tostring(server.folder), act, after or ""))
  check.equal(result.stderr, "")
  return result.stdout
end
local function succeeded(good) return ("succeeded\t%d\t%d\n"):format(good, good) end

check.equal(run "", succeeded(count))
-- The first ones are alone, since it isn't known that they are short. With a sanitizer none are.
local messages = message_count()
check.equal(is_sanitized ~= nil or messages < count * 9 // 10, true, messages)

-- Items that fail.
check.equal(run "if n % 10 == 0 then error('no ' .. n) end", succeeded(count * 9 // 10))

-- One item keeps its worker until the script knows that all others have ended, also those just before it.
local until_all_others = [[
  local ended = 0
  repeat
    flow.sleep(0.05)
    ended = 0
    for _, event in ipairs(run:events()) do
      if event.kind == "finish" and event.op == "Op" then ended = ended + 1 end
    end
  until ended == count - 1
  flow.fs.write(folder .. "/done", "")
]]
for _, long in ipairs { "late", "count" } do
  local act = ("if n == %s then repeat until io.open(folder .. '/done') end"):format(long)
  check.equal(run(act, until_all_others), succeeded(count))
  os.remove(server.folder .. "/done")
end

-- A stop reaches those that are busy, those that wait for them, and those that no node has.
check.equal(run([[
  if n > late // 9 then
    io.open(folder .. "/busy" .. n, "w"):close()
    while true do end
  end
]], [[
  repeat flow.sleep(0.01) until #flow.fs.list(folder, { match = "busy*" }) == 2
  run:cancel()
]]):match "^%a+", "cancelled")

-- An op with a timeout is stopped, although the others like it are short.
local result = server:run [[
  local flow = require "flow"
  local Op = flow.op("Op", {
    thread = "remote", needs = { n = "integer" }, timeout = 1,
    run = function(ctx) if ctx:get "n" == 150 then flow.sleep(3600) end end,
  })
  local list = {}
  for n = 1, 200 do list[n] = n end
  local run = flow.new("f"):data { list = list }:add_grouped(Op, {
    input = "list", as = "n", max_concurrent = 20 }):run()
  print(run.state, run.error.kind, run.error.message)
]]
check.match(result.stdout, "^failed\ttimeout\t")

-- One that ends its node while others wait for it there: all are executed by others.
check.equal(run [[
  if n == late and not io.open(folder .. "/killed") then
    io.open(folder .. "/killed", "w"):close()
    os.execute "kill -9 $PPID"
  end
]], succeeded(count))
