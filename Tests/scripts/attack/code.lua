-- Code that a sandboxed script loads, as bytecode, from libraries or from elsewhere, can do no more than the script.
-- clock: real: the virtual clock stands still while a program runs
local confined, check = require "confined", require "check"
local place <close> = confined.place()
if not place then return end

confined.all(place, {
  -- Bytecode is loaded, as by lua5.4: wrong bytecode may end the process that loads it, which is in the sandbox.
  { 48, "Bytecode reads a file outside", [[
    local function body(path) return assert(io.open(path)):read "a" end
    try("load", load(string.dump(body), "dump", "b"), outside .. "/secret")
    try("loadfile", function()
      local file <close> = assert(io.open(temporary .. "/dump", "wb"))
      file:write(string.dump(body))
      file:close()
      return loadfile(temporary .. "/dump")(outside .. "/secret")
    end)]] },
  { 49, "Each byte of a dump is flipped", [[
    local function body(a, ...)
      local t, n = { a, x = 1, ... }, 0
      for i, value in ipairs(t) do n = n + i % 7 end
      local up = function() t[#t + 1] = n return t, body end
      for i = 1, 3 do n = n + #up() // 1 | 2 end
      return n .. tostring(a):upper(), select("#", ...), coroutine.wrap(up)()
    end
    local dump = string.dump(body)
    local counts = { ended = 0, looped = 0, crashed = 0 }
    for i = 1, #dump do
      for _, bits in ipairs { 1, 0x80, 0xFF } do
        local changed = dump:sub(1, i - 1) .. string.char(dump:byte(i) ~ bits) .. dump:sub(i + 1)
        if sys("clone", 17, 0, 0, 0, 0) == 0 then
          -- Loops end by SIGALRM, and what it wants of memory by an error.
          sys("setitimer", 0, string.pack("jjjj", 0, 0, 0, 30000), 0)
          sys("prlimit64", 0, 9, string.pack("jj", 1 << 30, 1 << 30), 0)
          local f = load(changed, "dump", "b")
          if f then pcall(f, outside .. "/secret", io.open, os.remove) end
          sys("exit_group", 0)
        end
        local status = attack.buffer(8)
        sys("wait4", -1, status, 0, 0)
        local how = string.unpack("i4", attack.bytes(status, 4))
        how = how == 0 and "ended" or how & 127 == 14 and "looped" or "crashed"
        counts[how] = counts[how] + 1
      end
    end
    print(("%d dumps were harmless, %d were loops, %d ended their process"):format(
      counts.ended, counts.looped, counts.crashed))
    try("read", content, outside .. "/secret")]] },
  { 50, "A C function of libc is loaded by loadlib", [[
    assert(package.loadlib("libc.so.6", "*"))
    local system = assert(package.loadlib("libc.so.6", "system"))
    -- It gets the state as its text, and returns a number of results that aren't there.
    if sys("clone", 17, 0, 0, 0, 0) == 0 then pcall(system) sys("exit_group", 0) end
    sys("wait4", -1, attack.buffer(8), 0, 0)
    -- A library outside isn't found.
    try("loadlib", package.loadlib, outside .. "/module.so", "luaopen_attack")]] },
  { 50, "A C function of libc ends the process", [[package.loadlib("libc.so.6", "abort")()]],
    status = 134, alone = "it does so there, too" },
  { 51, "package.cpath leads out", [[
    package.cpath = outside .. "/?.so"
    try("require", require, "module")
    try("searchpath", package.searchpath, "module", package.cpath)]], alone = "the library has no function of that name" },
  { 52, "A searcher loads code from outside", [[
    table.insert(package.searchers, 1, function(name)
      return load(assert(content(outside .. "/" .. name)) and "return true")
    end)
    try("require", require, "secret")]] },
  { 53, "io.popen", [[
    try("popen", io.popen, "cat " .. outside .. "/secret")
    try("popen to write", io.popen, "cat", "w")]] },
  { 54, "os.execute", [[
    try("execute", os.execute, "true")
    try("a shell", os.execute)]] },
  { 54, "flow.exec and ExecOp", [[
    local flow = require "flow"
    try("exec", function() return flow.exec { "true" }:await() end)
    try("ExecOp", function() local r = flow.ops.ExecOp({ "true" }):run() return r.ok, r.error end)]] },
  { 54, "A process that was forked keeps what its parent waits for at the end", [[
    if sys("clone", 17, 0, 0, 0, 0) == 0 then
      for fd = 0, 2 do sys("close", fd) end
      -- SIGALRM ends it, in a read of what nobody writes.
      sys("setitimer", 0, string.pack("jjjj", 0, 0, 60, 0), 0)
      local ends = attack.buffer(8)
      sys("pipe2", ends, 0)
      sys("read", string.unpack("i4", attack.bytes(ends, 8)), attack.buffer(8), 1)
      sys("exit_group", 0)
    end
    print "refused: nothing else is tried"]], timeout = 20, alone = "it needn't wait there" },
  { 55, "os.exit in a task", [[
    local flow = require "flow"
    flow.spawn(function() flow.sleep(0.001) os.exit(7) end)
    flow.op("WaitOp", function(ctx) ctx:defer(function() print "did: a cleanup was executed" end) flow.sleep(100) end):run()]],
    status = 7, alone = "it does so there, too" },
  { 55, "os.exit in a task closes the state", [[
    local flow = require "flow"
    x = setmetatable({}, { __gc = function() os.exit(8, true) end })
    flow.spawn(function() flow.sleep(0.001) os.exit(8, true) end)
    flow.sleep(100)]], status = 8, alone = "it does so there, too" },
})
-- The folders of all those processes are gone.
check.lacks(confined.sh("ls \"$1\"", place.folder .. "/tmp"), "flowlua")
