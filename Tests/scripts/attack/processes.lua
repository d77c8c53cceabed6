-- In a sandbox no process outside is reached: by signals, by its memory, by sockets, by a second flowlua.
-- clock: real: the virtual clock stands still while a program runs
local confined, fs, check = require "confined", require "flow.fs", require "check"
local place <close> = confined.place()
if not place then return end
local attack = assert(package.loadlib(place.inside .. "/attack.so", "luaopen_attack"))()
local sys = attack.call

-- Servers of this process, outside: streams and datagrams, at abstract names and at paths.
local AF_UNIX, STREAM, DATAGRAM, NONBLOCK = 1, 1, 2, 0x800
local function listen(kind, name)
  local fd = assert(sys("socket", AF_UNIX, kind | NONBLOCK, 0))
  local address = string.pack("I2", AF_UNIX) .. name
  assert(sys("bind", fd, address, #address))
  if kind == STREAM then assert(sys("listen", fd, 100)) end
  return fd
end
local name = "flowlua-attack-" .. place.folder:match "[^/]+$"
fs.mkdir(place.folder .. "/sockets")
local path = place.folder .. "/sockets/"
local streams = { listen(STREAM, "\0" .. name), listen(STREAM, path .. "stream") }
local datagrams = { listen(DATAGRAM, "\0" .. name .. "-d"), listen(DATAGRAM, path .. "datagram") }
fs.write(place.inside .. "/name", name)

-- Memory, a queue and a semaphore of the System V kind.
local IPC_RMID, MODE = 0, 384 | 512
local shared = assert(sys("shmget", 0, 4096, MODE))
local memory = assert(sys("shmat", shared, 0, 0))
attack.poke(memory, "shared by the user's processes")
local queue = assert(sys("msgget", 0, MODE))
local semaphore = assert(sys("semget", 0, 1, MODE))
local _ <close> = setmetatable({}, { __close = function()
  sys("shmctl", shared, IPC_RMID) sys("msgctl", queue, IPC_RMID) sys("semctl", semaphore, 0, IPC_RMID)
end })
fs.write(place.inside .. "/ids", ("%d %d %d"):format(shared, queue, semaphore))

-- The superuser's processes may be reached in more ways.
local run, net = "--allow-run", "--allow-net"
local SIGKILL = 9
local function signal(body) return ([[
  local SIGKILL = 9
  victim = math.tointeger(victim)
  try("signal", function() %s end)
  -- The signal arrives before the end.
  if is_confined then try("parent", function() victim = sys "getppid" %s end) end]]):format(body, body) end
local SOCKETS = [[
  local AF_UNIX, STREAM, DATAGRAM = 1, 1, 2
  local name, paths = io.open(inside .. "/name"):read "a", place .. "/sockets/"
  local function address(text) text = string.pack("I2", AF_UNIX) .. text return text, #text end
  local function connect(fd, text) return sys("connect", fd, address(text)) end
  local function send(fd, text)
    local to, size = address(text)
    return sys("sendto", fd, "attack", 6, 0, to, size)
  end
]]

confined.all(place, {
  { 61, "A stream is connected to an abstract socket or a path", SOCKETS .. [[
    try("abstract", function() return connect(assert(sys("socket", AF_UNIX, STREAM, 0)), "\0" .. name) end)
    try("path", function() return connect(assert(sys("socket", AF_UNIX, STREAM, 0)), paths .. "stream") end)]] },
  { 61, "The same with --allow-net", SOCKETS .. [[
    try("abstract", function() return connect(assert(sys("socket", AF_UNIX, STREAM, 0)), "\0" .. name) end)
    try("path", function() return connect(assert(sys("socket", AF_UNIX, STREAM, 0)), paths .. "stream") end)
    try("datagram", function() return send(assert(sys("socket", AF_UNIX, DATAGRAM, 0)), paths .. "datagram") end)]],
    options = { net } },
  { 61, "A pair of raw sockets is one of datagrams", SOCKETS .. [[
    local fds = attack.buffer(8)
    local ok, why = sys("socketpair", AF_UNIX, 3, 0, fds)
    if not ok then print("refused: socketpair", why) return end
    try("path", send, string.unpack("i4", attack.bytes(fds, 8)), paths .. "datagram")]] },
  { 61, "A pair of sockets is of another family", [[
    -- AF_TIPC, SOCK_SEQPACKET
    try("socketpair", sys, "socketpair", 30, 5, 0, attack.buffer(8))]], alone = "not every system has it" },
  { 61, "One of a pair of sockets sends datagrams to others", SOCKETS .. [[
    local fds = attack.buffer(8)
    local ok, why = sys("socketpair", AF_UNIX, DATAGRAM, 0, fds)
    if not ok then print("refused: socketpair", why) return end
    local fd = string.unpack("i4", attack.bytes(fds, 8))
    try("abstract", send, fd, "\0" .. name .. "-d")
    try("path", send, fd, paths .. "datagram")
    try("connect", connect, fd, paths .. "datagram")]] },
  { 61, "One of a pair of connected sockets takes an abstract name", SOCKETS .. [[
    for _, kind in ipairs { STREAM, 5 } do
      local fds = attack.buffer(8)
      assert(sys("socketpair", AF_UNIX, kind, 0, fds))
      local fd = string.unpack("i4", attack.bytes(fds, 8))
      try("bind", function() return sys("bind", fd, address("\0" .. name .. "-" .. kind)) end)
    end]] },
  { 61, "kill", signal [[return sys("kill", victim, SIGKILL)]] },
  { 61, "kill of a group", [[
    try("kill", sys, "kill", -math.tointeger(victim), 9)]] },
  { 61, "tkill", signal [[return sys("tkill", victim, SIGKILL)]] },
  { 61, "tgkill", signal [[return sys("tgkill", victim, victim, SIGKILL)]] },
  { 61, "rt_sigqueueinfo", signal [[
    return sys("rt_sigqueueinfo", victim, SIGKILL, attack.buffer(128, string.pack("i4i4i4", SIGKILL, 0, -1)))]] },
  { 61, "rt_tgsigqueueinfo", signal [[
    return sys("rt_tgsigqueueinfo", victim, victim, SIGKILL, attack.buffer(128, string.pack("i4i4i4", SIGKILL, 0, -1)))]] },
  { 61, "pidfd_send_signal", signal [[return sys("pidfd_send_signal", assert(sys("pidfd_open", victim, 0)), SIGKILL, 0, 0)]] },
  { 61, "The signal of a pipe that another process owns", [[
    local F_SETFL, F_SETOWN, F_SETSIG, O_ASYNC = 4, 8, 10, 0x2000
    local ends = attack.buffer(8)
    assert(sys("pipe2", ends, 0))
    local reader, writer = string.unpack("i4i4", attack.bytes(ends, 8))
    local function own(pid)
      if not sys("fcntl", reader, F_SETOWN, pid) then return nil, "EPERM" end
      sys("fcntl", reader, F_SETSIG, 9)
      sys("fcntl", reader, F_SETFL, O_ASYNC)
      sys("write", writer, "x", 1)
    end
    own(math.tointeger(victim))
    if is_confined then own(sys "getppid") end
    print(is_confined and "refused: whatever it returns" or "did: nothing returns an error")]] },
  { 61, "Signals by the calls of other programs", [[
    victim = math.tointeger(victim)
    try("of 32-bit programs", attack.call32, 37, victim, 9)
    try("of x32", sys, 0x40000000 | 62, victim, 9)]], alone = "not every kernel has them" },
  { 61, "A program sends a signal", [[
    local flow = require "flow"
    local function program(...)
      local r = flow.exec({ ... }, { check = false }):await()
      return r.status == 0, r.stderr
    end
    try("kill", program, "bash", "-c", "kill -KILL " .. victim)
    if is_confined then try("parent", program, "bash", "-c", "kill -KILL " .. sys "getppid") end]], options = { run } },
  { 61, "Another process is traced", [[
    try("PTRACE_SEIZE", sys, "ptrace", 0x4206, math.tointeger(victim), 0, 0)
    if is_confined then try("parent", sys, "ptrace", 0x4206, sys "getppid", 0, 0) end]], alone = "Yama may refuse it" },
  { 61, "The memory of another process is read and written", [[
    local there, here = attack.buffer(16, string.pack("jj", 0x400000, 8)), attack.buffer(8)
    local own = attack.buffer(16, string.pack("jj", attack.address(here), 8))
    try("read", sys, "process_vm_readv", math.tointeger(victim), own, 1, there, 1, 0)
    try("write", sys, "process_vm_writev", math.tointeger(victim), own, 1, there, 1, 0)]],
    alone = "nothing may be at that address" },
  { 61, "A descriptor of another process is taken", [[
    try("pidfd_getfd", sys, "pidfd_getfd", sys("pidfd_open", math.tointeger(victim), 0) or -1, 1, 0)
    try("kcmp", function() local r, why = sys("kcmp", sys "getpid", math.tointeger(victim), 0, 1, 1) return r, why end)]],
    alone = "Yama may refuse it" },
  { 61, "Limits and priorities of another process are changed", [[
    victim = math.tointeger(victim)
    try("prlimit64", sys, "prlimit64", victim, 7, string.pack("jj", 5, 5), 0)
    try("setpriority", sys, "setpriority", 0, victim, 10)
    try("setpriority of a group", sys, "setpriority", 1, victim, 10)
    try("sched_setaffinity", sys, "sched_setaffinity", victim, 8, string.pack("j", 1))
    try("sched_setscheduler", sys, "sched_setscheduler", victim, 0, string.pack("i4", 0))
    try("ioprio_set", sys, "ioprio_set", 1, victim, 2 << 13 | 7)]] },
  { 61, "Memory, queues and semaphores of other processes are used", [[
    local shared, queue, semaphore = io.open(inside .. "/ids"):read("n", "n", "n")
    try("shmctl", sys, "shmctl", shared, 2, attack.buffer(200))
    try("shmat", function()
      local memory, why = sys("shmat", shared, 0, 0)
      return memory and attack.bytes(memory, 30), why
    end)
    try("msgsnd", sys, "msgsnd", queue, string.pack("j", 1) .. "attack", 6, 0x800)
    try("semop", sys, "semop", semaphore, string.pack("I2i2i2", 0, 1, 0), 1)
    try("semctl", sys, "semctl", semaphore, 0, 16, 7)]] },
  { 61, "Message queues and keys are made", [[
    try("mq_open", sys, "mq_open", "flowlua-attack", 66, 384, 0)
    try("mq_unlink", sys, "mq_unlink", "flowlua-attack")
    try("keyctl", sys, "keyctl", 0, -4, 1)]], alone = "not every kernel has them" },
  { 62, "flowlua without --sandbox is started from inside", [[
    local flow = require "flow"
    local function second(...)
      local words = { binary, ... }
      table.move({ "-e", ("assert(io.open %q)"):format(outside .. "/secret") }, 1, 2, #words + 1, words)
      local r = flow.exec(words, { check = false }):await()
      return r.status == 0, r.stderr
    end
    try("plain", second)
    try("wider", second, "--sandbox", "--allow-read=/", "--allow-run")]], options = { run } },
  { 62, "Programs are started without --allow-run", [[
    local flow = require "flow"
    try("exec", function() local r = flow.exec({ binary, "-v" }, { check = false }) r:wait() return r.result, r.error end)
    try("execve", function()
      if sys("clone", 17, 0, 0, 0, 0) == 0 then
        local _, why = sys("execve", "/bin/true", string.pack("jj", attack.address "true", 0), string.pack("j", 0))
        sys("exit_group", 1)
      end
      local status = attack.buffer(8)
      sys("wait4", -1, status, 0, 0)
      return string.unpack("i4", attack.bytes(status, 4)) == 0, "the child says so"
    end)
    try("execveat", function()
      if sys("clone", 17, 0, 0, 0, 0) == 0 then
        sys("execveat", -100, "/bin/true", string.pack("jj", attack.address "true", 0), string.pack("j", 0), 0)
        sys("exit_group", 1)
      end
      local status = attack.buffer(8)
      sys("wait4", -1, status, 0, 0)
      return string.unpack("i4", attack.bytes(status, 4)) == 0, "the child says so"
    end)]] },
  { 63, "io_uring opens files", [[try("io_uring_setup", sys, "io_uring_setup", 4, attack.buffer(200))]],
    alone = "a system may have disabled it" },
  { 63, "Parts of the kernel with a history are used", [[
    try("userfaultfd", sys, "userfaultfd", 1)
    try("perf_event_open", sys, "perf_event_open", attack.buffer(128, string.pack("I4I4j", 1, 128, 0)), 0, -1, -1, 0)
    try("bpf", sys, "bpf", 0, attack.buffer(128, string.pack("I4I4I4I4", 2, 4, 8, 1)), 72)]], alone = "not everybody may" },
  { 63, "Namespaces are made", [[
    try("of users", sys, "unshare", 0x10000000)
    try("of mounts", sys, "unshare", 0x20000)
    try("by clone", function()
      local child, why = sys("clone", 0x10000000 | 17, 0, 0, 0, 0)
      if child == 0 then sys("exit_group", 0) end
      return child, why
    end)
    try("by clone3", function()
      local child, why = sys(435, attack.buffer(88, string.pack("jjjjj", 0x10000000, 0, 0, 0, 17)), 88)
      if child == 0 then sys("exit_group", 0) end
      return child, why
    end)]], alone = "not everybody may" },
  { 63, "File systems are mounted", [[
    try("mount", sys, "mount", "none", inside, "tmpfs", 0, 0)
    try("open_tree", sys, "open_tree", AT_FDCWD, outside, 1)
    try("fsopen", sys, "fsopen", "tmpfs", 0)]], alone = "only the superuser may" },
  { 64, "An op is sent to a worker", [[
    local flow = require "flow"
    local library = inside .. "/attack.so"
    local function worker(body)
      local run = flow.op("WorkOp", { thread = "worker", needs = { path = "string" }, gives = { x = "any" }, run = body })
        :run { path = outside .. "/secret" }
      return run.ok and run.data.x, run.error
    end
    try("open", worker, function(ctx) ctx:set("x", assert(io.open(ctx:get "path")):read "a") end)
    try("write", worker, function(ctx) ctx:set("x", assert(io.open(ctx:get "path", "a")):write "x" ~= nil) end)
    try("popen", worker, function(ctx) ctx:set("x", #assert(io.popen("cat " .. ctx:get "path")):read "a" > 0) end)
    try("exec", worker, function(ctx) ctx:set("x", require "flow".exec { "cat", ctx:get "path" }:await().stdout) end)
    try("fs", function() local t = flow.ops.ReadFileOp:start { path = outside .. "/secret" } t:wait() return t.ok, t.error end)
    try("copy", function() local t = require "flow.fs".copy(outside .. "/secret", temporary .. "/copied") return true end)
    try("chmod", worker, function(ctx)
      local module = ctx:get "path":gsub("outside/secret$", "inside/attack.so")
      local sys = assert(package.loadlib(module, "luaopen_attack"))().call
      ctx:set("x", assert(sys("fchmodat", -100, ctx:get "path", 438)))
    end)]] },
  { 64, "A thread was there before", [[
    local flow = require "flow"
    flow.op("WorkOp", { thread = "worker", run = function() end }):run()
    try("widen", pcall, flow.sandbox, { read = "/" })
    try("read", content, outside .. "/secret")]], alone = "without a sandbox the file may be read" },
  { 65, "LUA_INIT of the environment is executed", [[try("init", function() return init end)]],
    env = { LUA_INIT = "init = io.open 'Tests/scripts/README.md'", LUA_INIT_5_4 = "init = 1" } },
  { 65, "LUA_PATH and LUA_CPATH of the environment lead out", [[
    try("path", function() return package.path:find("/attack/path", 1, true) end)
    try("cpath", function() return package.cpath:find("/attack/path", 1, true) end)]],
    env = { LUA_PATH = "/attack/path/?.lua", LUA_CPATH = "/attack/path/?.so" } },
  { 66, "flow.sandbox is called again to widen", [[
    local flow = require "flow"
    for _, options in ipairs { { read = "/", write = "/", net = true, run = true }, { read = outside } } do
      pcall(flow.sandbox, options)
      try("read", content, outside .. "/secret")
      try("write", written, outside .. "/secret")
      try("run", function() return flow.exec { "true" }:await() end)
      try("socket", sys, "socket", 2, 1, 0)
    end]], alone = "without a sandbox it narrows" },
  { 66, "Characters are typed for the shell", [[
    for _, command in ipairs { 0x5412, 0x541C, 1 << 32 | 0x5412 } do
      try("ioctl", function()
        local ok, why = sys("ioctl", 0, command, "\n")
        return ok or why ~= "EPERM" and "only " .. why, why
      end)
    end]], alone = "newer kernels refuse it" },
  { 66, "Sockets are made", [[
    for family = 1, 45 do
      for kind = 1, 5 do try(("socket %d %d"):format(family, kind), sys, "socket", family, kind, 0) end
    end]], alone = "no system has all" },
  { 66, "Raw and other sockets are made with --allow-net", [[
    for family = 1, 45 do
      for kind = 1, 5 do
        if family ~= 16 and not ((family == 2 or family == 10) and kind <= 2) then
          try(("socket %d %d"):format(family, kind), sys, "socket", family, kind, 0)
        end
      end
    end
    try("SOCK_PACKET", sys, "socket", 2, 10, 0)
    try("with flags", sys, "socket", 2, 3 | 0x80800, 1)]], options = { net }, alone = "no system has all" },
  { 66, "The kernel's tables other than those of addresses are asked with --allow-net", [[
    for protocol = 1, 22 do try("netlink " .. protocol, sys, "socket", 16, 3, protocol) end]],
    options = { net }, alone = "no system has all" },
})

-- Nothing has arrived at the servers but what was sent without a sandbox.
for _, fd in ipairs(streams) do sys("close", fd) end
for _, fd in ipairs(datagrams) do sys("close", fd) end
