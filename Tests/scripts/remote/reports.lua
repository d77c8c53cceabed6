-- The server stores reports about ops only of kept runs, and while a script has no time for them.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join "m1"
local function stored() return tonumber(server:request "$JS.API.STREAM.INFO.FLOWLUA_NEWS":match '"last_seq":(%d+)') end
local function run(text, ...)
  local result = server:run([[
    local Op = flow.op("WorkOp", {
      needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
      run = function(ctx) ctx:set("r", ctx:get "n" * 2) end,
    })
    local run = flow.new("work"):data { ns = { 1, 2, 3, 4, 5 } }:add_grouped(Op, { input = "ns", as = "n", output = "rs" }):start()
  ]] .. text .. [[
    run:wait()
    print(run.state, run.error, table.concat(run.data.rs or {}, " "))
  ]], ...)
  check.equal(result.stderr, "")
  check.equal(result.stdout, "succeeded\tnil\t2 4 6 8 10\n")
end

run ""
check.equal(stored(), 0)
-- The op ends while nobody replies to the questions of its node, for longer than a second.
run [[
  local SlowOp = flow.op("SlowOp", { gives = { r = "integer" }, thread = "remote", run = function(ctx)
    ctx:log "has begun"
    require "flow".sleep(0.2)
    ctx:set("r", 1)
  end })
  local slow = flow.new("slow"):add(SlowOp):start()
  local function has_begun()
    for _, event in ipairs(slow:events()) do if event.kind == "log" then return true end end
  end
  while not has_begun() do flow.sleep(0.001) end
  os.execute "sleep 1.6"
  slow:wait()
  assert(slow.data.r == 1, slow.error)
]]
local busy = stored()
check.equal(busy > 0, true)
run("", "--keep", "--store", flow.fs.temp_dir())
check.equal(stored() > busy, true)
