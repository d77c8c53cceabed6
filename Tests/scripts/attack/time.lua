-- Code that wants to run for ever ends with status 124 under `--time-limit`, whatever it catches.
-- clock: real: the time limit is one of the machine's clock
local attack, check = require "attack", require "check"

local function is_stopped(result)
  check.equal(result.status, 124)
  check.contains(result.stderr, "the time limit of ", " was exceeded")
end
-- An output that nobody reads.
local function full(stream) return "p=$(mktemp -u); mkfifo $p; exec 3<>$p; rm $p; exec \"$@\" " .. stream .. ">&3" end
local function is_stopped_in_silence(result) check.equal(result.status, 124) end
local short = { "--time-limit", "0.2", "--grace", "0.2" }
-- The numbers of programs that Lua has started, which outlive it.
local programs = os.tmpname()
local _ <close> = setmetatable({}, { __close = function()
  for pid in io.lines(programs) do os.execute("kill -KILL " .. pid) end
  os.remove(programs)
end })

attack.all({
  { 1, "A loop calls a loop in pcall", "while true do pcall(function() while true do end end) end" },
  { 2, "A loop runs in coroutines", [[
    local cos = {}
    for i = 1, 100 do cos[i] = coroutine.create(function() while true do end end) end
    while true do
      for i = 1, 100 do coroutine.resume(cos[i]) cos[i] = coroutine.create(function() while true do end end) end
    end]] },
  { 3, "The handler of xpcall is a loop", "while true do xpcall(error, function() while true do end end) end" },
  { 3, "A loop and its handler are loops", [[
    xpcall(function() while true do end end, function() while true do end end)]] },
  { 4, "A __gc is a loop", [[
    setmetatable({}, { __gc = function() while true do end end }) collectgarbage()]] },
  { 4, "A __gc makes objects with a __gc", [[
    local function again() setmetatable({}, { __gc = function() again() while true do end end }) end
    again()
    while true do pcall(collectgarbage) end]] },
  { 4, "A __gc is a loop when the state is closed", "x = setmetatable({}, { __gc = function() while true do end end })" },
  { 4, "A __gc is a pattern match when the state is closed", [[
    x = setmetatable({}, { __gc = function() ("x"):rep(1e5):find ".-.-.-.-b" end })]] },
  { 4, "A __gc is a loop when the script fails", [[
    x = setmetatable({}, { __gc = function() while true do end end }) error "failed"]] },
  { 4, "A __gc is a loop when the script calls os.exit", [[
    x = setmetatable({}, { __gc = function() while true do end end }) os.exit(true, true)]] },
  { 5, "A __close is a loop", [[
    local x <close> = setmetatable({}, { __close = function() while true do end end }) while true do end]] },
  { 5, "A __close catches what stops it", [[
    local function loop() while true do pcall(function() while true do end end) end end
    local x <close> = setmetatable({}, { __close = loop })
    while true do end]] },
  { 5, "A cleanup catches what stops it", [[
    local flow = require "flow"
    local function loop() while true do pcall(function() while true do end end) end end
    flow.op("LoopOp", function(ctx) ctx:defer(loop) loop() end):run()]] },
  { 5, "A cleanup sleeps", [[
    local flow = require "flow"
    flow.op("LoopOp", function(ctx) ctx:defer(function() while true do pcall(flow.sleep, 1e9) end end) flow.sleep(1e9) end)
      :run()]] },
  { 6, "A pattern tries 2^30 ways", [[("a"):rep(30):find(("a?"):rep(30) .. ("a"):rep(30) .. "b")]] },
  { 7, "A pattern takes the fourth power of a length", [[
    while true do pcall(string.find, ("x"):rep(40000), ".-.-.-b") end]] },
  { 8, "Numbers are printed with many digits", [[for i = 1, 3e9 do string.format("%99.99f", 1e300) end]] },
  { 9, "A table is moved that has 10^12 elements", "table.move({}, 1, 1e12, 2)" },
  { 10, "A table of millions of numbers is sorted", [[
    local t = {}
    for i = 1, 6e6 do t[i] = i * 7919 % 6000011 end
    while true do table.sort(t, math.ult) table.move(t, 1, 3e6, 2) t[1] = 0 end]], options = { "--time-limit", "1" } },
  { 11, "An order isn't one", [[
    local t = {}
    for i = 1, 1000 do t[i] = i end
    while true do pcall(table.sort, t, function() return true end) end]] },
  { 12, "Long strings are made in pcall", [[while true do pcall(string.rep, "x", 1e8) end]] },
  { 13, "A function of gsub is a loop", [[while true do pcall(string.gsub, "abc", ".", function() while true do end end) end]] },
  { 14, "The characters of 100 MB are counted", [[
    local text = ("x"):rep(1e8) while true do for _ in utf8.codes(text) do end end]] },
  -- The program itself is no longer a part of the script.
  { 15, "A program sleeps", ("os.execute 'echo $$ >>%s; exec sleep 1000000 >/dev/null 2>&1'"):format(programs) },
  { 15, "A program of io.popen sleeps", ("io.popen('echo $$ >>%s; exec sleep 1000000 2>/dev/null'):read 'a'"):format(programs) },
  { 15, "A program of flow.exec takes no signal but SIGKILL", [[
    require "flow".exec({ "sh", "-c", "trap '' TERM INT HUP; sleep 1000000; sleep 1000000" }):await()]] },
  { 16, "An input stays open", [[io.read "a"]] },
  { 16, "Nobody reads the output", [[while true do print(("x"):rep(1e5)) end]], shell = full "" },
  { 16, "Nobody reads the output, of which a part is in the buffer", [[
    io.stdout:setvbuf("full", 1 << 20) io.write(("x"):rep(65536)) io.stdout:flush() io.write "more"
    while true do pcall(string.find, ("x"):rep(40000), ".-.-.-b") end]], shell = full "" },
  { 16, "Nobody reads the output, and the rest of it is written at the end", [[
    io.stdout:setvbuf("full", 1 << 20) io.write(("x"):rep(65536)) io.stdout:flush() io.write "more"
    while true do end]], shell = full "" },
  { 16, "Nobody reads the messages", [[
    io.stderr:write(("x"):rep(65536)) while true do pcall(string.find, ("x"):rep(40000), ".-.-.-b") end]],
    shell = full "2", expect = is_stopped_in_silence },
  { 16, "Nobody reads the message about an error", [[io.stderr:write(("x"):rep(65536)) while true do end]],
    shell = full "2", expect = is_stopped_in_silence },
  { 17, "A loop removes the hook", "while true do debug.sethook() end" },
  { 17, "A loop replaces the hook", [[
    while true do
      debug.sethook(function() pcall(debug.sethook) end, "crl", 1)
      pcall(function() while true do debug.sethook() end end)
    end]] },
  { 18, "A loop runs in each of many nested coroutines", [[
    local function nest(n)
      if n == 0 then while true do end end
      while true do pcall(coroutine.wrap(function() nest(n - 1) end)) end
    end
    nest(150)]] },
  { 36, "A chain of __call is a cycle", [[
    local c = setmetatable({}, {}) getmetatable(c).__call = c while true do pcall(c) end]] },
  -- Beyond the list: what flow adds.
  { "flow", "Sleeps are caught", [[local flow = require "flow" while true do pcall(flow.sleep, 1e9) end]] },
  { "flow", "Sleeps take no time", [[local flow = require "flow" while true do pcall(flow.sleep, 1e9) end]],
    options = { "--virtual-clock", "--time-limit", "0.2" } },
  { "flow", "A worker is a loop", [[
    require "flow".op("LoopOp", { thread = "worker", run = function()
      while true do pcall(function() while true do end end) end
    end }):run()]] },
  { "flow", "A worker matches a pattern", [[
    require "flow".op("LoopOp", { thread = "worker", run = function() ("x"):rep(40000):find ".-.-.-.-b" end }):run()]] },
  { "flow", "Tasks start tasks", [[
    local flow = require "flow"
    local function again() flow.sleep(0) flow.spawn(again) flow.spawn(again) end
    again()]] },
  { "cpu", "Processor time is used up", "while true do pcall(function() while true do end end) end",
    options = { "--cpu-limit", "1" }, expect = function(result)
      check.equal(result.status, 124)
      check.contains(result.stderr, "the limit of 1 s of processor time was exceeded")
    end },
}, short, is_stopped, 6)
