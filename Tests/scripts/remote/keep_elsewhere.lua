-- A run that a server keeps continues on another computer: what had finished isn't executed again, and its data is there.
-- clock: real: the scripts are other programs
local check, kept, remote = require "check", require "kept", require "remote"

local text = [[
local BigOp = flow.op("BigOp", { gives = { big = "string", list = "table" }, run = function(ctx)
  effect "big"
  ctx:set("big", ("x"):rep(3000000) .. "end")
  ctx:set("list", { n = 1, text = "open text" })
end })
local LoginOp = flow.op("LoginOp", function(ctx)
  effect "login"
  ctx:set("token", flow.secret "hidden text")
end)
local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, gives = { square = "integer" }, run = function(ctx)
  local n = ctx:get "item"
  effect("item " .. n)
  if n == 6 and os.getenv "DIE" then
    flow.sleep(0.05)
    os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
  end
  ctx:set("square", n * n)
end })
local LastOp = flow.op("LastOp", function(ctx)
  local squares = table.concat(ctx:get "squares", ",")
  print(#ctx:get "big", ctx:get "list".text, squares, #ctx:get "token")
end)
flow.new("work"):data { numbers = { 1, 2, 3, 4, 5, 6, 7, 8 } }:add(BigOp):add(LoginOp)
  :add_grouped(ItemOp, { input = "numbers", output = "squares", max_concurrent = 1 }):add(LastOp):run()
]]

for _, environment in ipairs { { FLOWLUA_STORE_KEY = "random" }, { FLOWLUA_STORE_KEY = "random",
  FLOWLUA_REMOTE_KEY = "a long random text" } } do
  local server <close> = remote.server()
  local function on(node, words, more)
    words.environment = { FLOWLUA_REMOTE = server.url }
    for name, value in pairs(environment) do words.environment[name] = value end
    for name, value in pairs(more or {}) do words.environment[name] = value end
    return node:run(words)
  end

  local first, second = kept.script(text), kept.script(text)
  local result = on(first, { "--keep=nats" }, { DIE = "1" })
  assert(result.status ~= 0)
  first:expect_effects("big", "login", "item 1", "item 2", "item 3", "item 4", "item 5", "item 6")

  result = on(second, { "--keep=nats", "--resume", "--follow" })
  check.equal(result.status, 0, result.stderr)
  check.contains(result.stdout, "3000003\topen text\t1,4,9,16,25,36,49,64\t11\n")
  check.contains(result.stderr, "[BigOp] Kept from run r", "[ItemOp #5] Kept from run r",
    "[LoginOp] Kept", "[ItemOp #6] Again: it had started, but not finished")
  second:expect_effects("item 6", "item 7", "item 8")

  -- Who may read the server's files finds no secret there, and with a key nothing at all.
  local function is_there(words) return os.execute("grep -rqF '" .. words .. "' " .. server.folder .. "/store") == true end
  check.equal(is_there "hidden text", false)
  check.equal(is_there "open text", not environment.FLOWLUA_REMOTE_KEY)
  check.equal(is_there "LoginOp", not environment.FLOWLUA_REMOTE_KEY)

  -- A finished run begins again, as with every store; the copy of the first node gets what it lacks.
  local list = on(first, { "--keep=nats", "--runs" }).stdout
  check.contains(list, " finished ", " 11 finished")
  check.equal(on(first, { "--keep=nats", "--verify" }).stdout, "verified 1 run\n")
  -- A value that is too large for a message goes with its run.
  local function size() return tonumber(server:request "$JS.API.STREAM.INFO.OBJ_flowlua-keep":match '"bytes":(%d+)') end
  check.equal(size() > 3000000, true)
  local id = list:match "\n(r%w+)"
  check.equal(on(second, { "--keep=nats", "--forget", id }).stdout, "removed run " .. id .. "\n")
  check.equal(size() < 10000, true)
  result = on(first, { "--keep=nats", "--why" })
  check.contains(result.stdout, "[work/BigOp] Executes: no run of the script is unfinished")
end
