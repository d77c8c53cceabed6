-- On a kernel with less of Landlock a sandbox is as tight, or it is an error that says what is missing.
-- clock: real: the virtual clock stands still while a program runs
local confined, check, host, flow = require "confined", require "check", require "host", require "flow"
local place <close> = confined.place()
local old = place and place.folder .. "/old_kernel"
if not place or not confined.compile("old_kernel.c", old) then return end

local function run(kernel, ...)
  local words = { old, kernel, host.binary, ... }
  words[#words + 1] = "-e"
  words[#words + 1] = "print(io.open 'Tests/scripts/README.md')"
  return flow.exec(words, { check = false, timeout = 60 }):await()
end
local probe = run("version:4", "--sandbox")
-- Skipped: a filter in a container may refuse the filters of this test, or the kernel has none.
if probe.status == 99 or probe.stderr:find("no Landlock", 1, true) then
  return check.skip("this kernel can't be made to look older: " .. probe.stderr)
end
check.equal(probe.stderr, "")
check.contains(probe.stdout, "Permission denied")

-- A limit that can't be enforced is an error, and the script isn't executed.
for _, case in ipairs {
  { "landlock:ENOSYS", "no Landlock", "Function not implemented", "Linux 5.19" },
  { "landlock:EOPNOTSUPP", "no Landlock, or it is disabled", "Operation not supported", "Linux 5.19" },
  { "version:1", "version 1 of Landlock", "version 2 (Linux 5.19)" },
  { "seccomp:ENOSYS", "seccomp", "Function not implemented" },
  { "seccomp:EINVAL", "seccomp", "Invalid argument" },
} do
  for _, option in ipairs { "--sandbox", "--sandbox=strict" } do
    local result = run(case[1], option)
    check.equal(result.status, 2, case[1])
    check.equal(result.stdout, "", case[1])
    check.contains(result.stderr, "--sandbox: ", case[2])
    if option == "--sandbox" then check.contains(result.stderr, table.unpack(case, 3)) end
    check.equal(select(2, result.stderr:gsub("\n", "")), 1, "lines of " .. case[1])
  end
end
for version = 1, 7 do
  local result = run("version:" .. version, "--sandbox=strict")
  if version < 6 then
    check.equal(result.status, 2)
    check.equal(result.stdout, "")
    check.contains(result.stderr, ("the kernel has version %d of Landlock: a strict sandbox needs version 6"):format(version))
  elseif result.status ~= 0 then
    -- This kernel itself is older.
    check.contains(result.stderr, "--sandbox: ")
  end
end
-- From inside it is an error of the script.
for _, kernel in ipairs { "landlock:ENOSYS", "version:1", "seccomp:EINVAL" } do
  local result = flow.exec({ old, kernel, host.binary, "-e",
    "local flow = require 'flow' print(pcall(flow.sandbox, {}))" }, { check = false, timeout = 60 }):await()
  check.contains(result.stdout, "false", "can't enter the sandbox: the kernel has ")
end

local function signal(body) return ([[
  victim = math.tointeger(victim)
  try("signal", function() %s end)
  try("parent", function() victim = sys "getppid" %s end)]]):format(body, body) end
local net, run_option = "--allow-net", "--allow-run"
local server <close> = require "servers".files(place.inside)
require "flow.fs".write(place.inside .. "/port", tostring(server.http))
local attacks = {
  { 60, "Files are truncated by their paths", [[
    for _, path in ipairs { outside .. "/secret", inside .. "/readable" } do
      try("truncate", sys, "truncate", path, 1)
      try("O_RDONLY and O_TRUNC", sys, "openat", AT_FDCWD, path, 512)
      try("O_RDONLY and O_TRUNC by open", sys, "open", path, 512)
      try("with more flags", sys, "openat", AT_FDCWD, path, 512 | 0x80000 | 0x800 | 0x100)
      try("O_ACCMODE and O_TRUNC", sys, "openat", AT_FDCWD, path, 512 | 3)
      try("creat", sys, "creat", path, 420)
      try("O_WRONLY", sys, "openat", AT_FDCWD, path, 513)
      try("O_RDWR", sys, "openat", AT_FDCWD, path, 514)
      try("openat2", sys, "openat2", AT_FDCWD, path, string.pack("jjj", 512, 0, 0), 24)
      try("Lua", written, path)
    end
    -- Its own files it truncates.
    assert(written(temporary .. "/own") and written(temporary .. "/own"))]] },
  { 60, "Files outside are read, made, renamed and removed", [[
    try("read", content, outside .. "/secret")
    try("make", written, outside .. "/new")
    try("rename", os.rename, outside .. "/secret", outside .. "/new")
    try("link", sys, "linkat", AT_FDCWD, outside .. "/secret", AT_FDCWD, temporary .. "/hard", 0)
    try("remove", os.remove, outside .. "/secret")]] },
  { 61, "kill", signal [[return sys("kill", victim, 9)]] },
  { 61, "kill of a group", [[try("kill", sys, "kill", -math.tointeger(victim), 9)]] },
  { 61, "tkill", signal [[return sys("tkill", victim, 9)]] },
  { 61, "tgkill", signal [[return sys("tgkill", victim, victim, 9)]] },
  { 61, "rt_sigqueueinfo", signal [[
    return sys("rt_sigqueueinfo", victim, 9, attack.buffer(128, string.pack("i4i4i4", 9, 0, -1)))]] },
  { 61, "rt_tgsigqueueinfo", signal [[
    return sys("rt_tgsigqueueinfo", victim, victim, 9, attack.buffer(128, string.pack("i4i4i4", 9, 0, -1)))]] },
  { 61, "pidfd_send_signal", signal [[return sys("pidfd_send_signal", assert(sys("pidfd_open", victim, 0)), 9, 0, 0)]] },
  { 61, "The signal of a pipe that another process owns", [[
    local F_SETFL, F_SETOWN, F_SETSIG, O_ASYNC = 4, 8, 10, 0x2000
    for _, pid in ipairs { math.tointeger(victim), (sys "getppid") } do
      local ends = attack.buffer(8)
      assert(sys("pipe2", ends, 0))
      local reader, writer = string.unpack("i4i4", attack.bytes(ends, 8))
      sys("fcntl", reader, F_SETOWN, pid)
      sys("fcntl", reader, F_SETSIG, 9)
      sys("fcntl", reader, F_SETFL, O_ASYNC)
      sys("write", writer, "x", 1)
    end
    print "refused: whatever it returns"]] },
  { 61, "The signal of a pipe that another process owns, by F_SETOWN_EX", [[
    local F_SETFL, F_SETOWN_EX, F_SETSIG, O_ASYNC = 4, 15, 10, 0x2000
    for _, pid in ipairs { math.tointeger(victim), (sys "getppid") } do
      local ends = attack.buffer(8)
      assert(sys("pipe2", ends, 0))
      local reader, writer = string.unpack("i4i4", attack.bytes(ends, 8))
      sys("fcntl", reader, F_SETOWN_EX, string.pack("i4i4", 1, pid))
      sys("fcntl", reader, F_SETSIG, 9)
      sys("fcntl", reader, F_SETFL, O_ASYNC)
      sys("write", writer, "x", 1)
    end
    print "refused: whatever it returns"]] },
  { 61, "Sockets are made", [[
    try("TCP", sys, "socket", 2, 1, 0)
    try("UDP", sys, "socket", 2, 2, 0)
    try("UNIX", sys, "socket", 1, 1, 0)
    local flow = require "flow"
    try("http", function() return flow.http("http://127.0.0.1:" .. content(inside .. "/port")):await() end)]] },
  { 61, "Abstract sockets are used with --allow-net", [[
    try("UNIX", sys, "socket", 1, 1, 0)
    try("UNIX datagrams", sys, "socket", 1, 2, 0)]], options = { net } },
  { 62, "A program reads files, and opens connections", [[
    local flow = require "flow"
    local function program(...)
      local r = flow.exec({ ... }, { check = false }):await()
      return r.status == 0, r.stderr
    end
    try("cat", program, "cat", outside .. "/secret")
    try("sh", program, "bash", "-c", ": >" .. inside .. "/readable")
    try("truncate", program, "truncate", "-s", "1", inside .. "/readable")
    try("tcp", program, "bash", "-c", ": </dev/tcp/127.0.0.1/" .. content(inside .. "/port"))]],
    options = { run_option } },
}
local problems = {}
for _, version in ipairs { 2, 3, 5 } do
  local ok, problem = pcall(confined.all, place, attacks, { old, "version:" .. version })
  if not ok then problems[#problems + 1] = ("with version %d: %s"):format(version, problem) end
end
if #problems > 0 then error(table.concat(problems, "\n"), 0) end
