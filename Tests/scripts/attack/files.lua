-- In a sandbox neither Lua, nor a C module, nor a program reaches a file outside, whatever it goes by.
-- clock: real: the virtual clock stands still while a program runs
local confined = require "confined"
local place <close> = confined.place()
if not place then return end
-- A real server.
local server <close> = require "servers".files(place.inside)
require "flow.fs".write(place.inside .. "/port", tostring(server.http))
local write, run = "--allow-write=" .. place.inside .. "/area", "--allow-run"

-- It succeeds only at times.
local swap = { 60, "A file is swapped while the folder of the sandbox is removed", [[
  -- The process that removes it isn't in the sandbox. It begins when no process has the end of its pipe any more.
  local COUNT = 400
  for i = 1, COUNT do
    sys("mkdirat", AT_FDCWD, temporary .. "/folder" .. i, 448)
    sys("symlinkat", outside, AT_FDCWD, temporary .. "/link" .. i)
  end
  io.write "refused: nothing is tried before the end: \n"
  io.flush()
  -- SIGCHLD
  if sys("clone", 17, 0, 0, 0, 0) == 0 then
    sys "setsid"
    for fd = 0, 100 do sys("close", fd) end
    local begin, i = os.time(), 0
    while os.time() - begin < 2 do
      i = i % COUNT + 1
      local folder, link = temporary .. "/folder" .. i, temporary .. "/link" .. i
      if not sys("renameat2", AT_FDCWD, folder, AT_FDCWD, link, 2) then
        local did = sys("mkdirat", AT_FDCWD, folder, 448)
        if not sys("symlinkat", outside, AT_FDCWD, link) and not did then break end
      end
    end
    sys("exit_group", 0)
  end]], alone = "there is nothing to remove" }

confined.all(place, {
  swap, swap, swap,
  { 56, "Lua reads and writes files outside", [[
    try("read", content, outside .. "/secret")
    try("read by ..", content, inside .. "/../outside/secret")
    try("read by a relative path", content, "/tmp/../" .. outside .. "/secret")
    try("lines", function() return io.lines(outside .. "/secret")() end)
    try("append", written, outside .. "/secret", "a")
    try("update", written, outside .. "/secret", "r+")
    try("loadfile", loadfile, outside .. "/secret", "t") ]] , alone = "loadfile finds no Lua" },
  { 56, "Lua makes, renames and removes files outside", [[
    try("make", written, outside .. "/new")
    try("rename", os.rename, outside .. "/new", outside .. "/newer")
    try("replace", os.rename, outside .. "/tool", outside .. "/secret")
    try("remove", os.remove, outside .. "/secret")
    try("remove a folder", function() os.remove(outside .. "/folder/file") return os.remove(outside .. "/folder") end)]] },
  { 56, "flow.fs reaches files outside", [[
    local fs, flow = require "flow.fs", require "flow"
    try("read", fs.read, outside .. "/secret")
    try("list", fs.list, outside)
    try("copy", function() fs.copy(outside .. "/secret", temporary .. "/copy") return true end)
    try("write", function() fs.write(outside .. "/secret", "x") return true end)
    try("op", function() local r = flow.ops.ReadFileOp:run { path = outside .. "/secret" } return r.ok, r.error end)
    try("remove", function() fs.remove(outside, { recursive = true }) return true end)]] },
  { 56, "A symbolic link leads out", [[
    try("read", content, inside .. "/area/link")
    try("read in a linked folder", content, inside .. "/area/folder_link/secret")
    try("a new link", function()
      assert(sys("symlinkat", outside .. "/secret", AT_FDCWD, inside .. "/area/mine") == 0)
      return content(inside .. "/area/mine")
    end)
    try("write", written, inside .. "/area/link")]], options = { write } },
  { 56, "A hard link leads out", [[
    try("link in", function()
      assert(sys("linkat", AT_FDCWD, outside .. "/secret", AT_FDCWD, inside .. "/area/hard", 0))
      return content(inside .. "/area/hard")
    end)
    try("link out", sys, "linkat", AT_FDCWD, inside .. "/readable", AT_FDCWD, outside .. "/hard", 0)
    try("link by a descriptor", function()
      local fd = assert(sys("openat", AT_FDCWD, outside .. "/secret", O_PATH))
      assert(sys("linkat", fd, "", AT_FDCWD, inside .. "/area/hard2", 0x1000))
      return content(inside .. "/area/hard2")
    end)]], options = { write }, alone = "only the superuser links by a descriptor" },
  { 56, "A rename moves files in and out", [[
    try("in", sys, "renameat2", AT_FDCWD, outside .. "/folder", AT_FDCWD, inside .. "/area/moved", 0)
    assert(written(inside .. "/area/mine"))
    try("out", sys, "renameat2", AT_FDCWD, inside .. "/area/mine", AT_FDCWD, outside .. "/mine", 0)
    assert(written(inside .. "/area/mine"))
    try("exchange", sys, "renameat2", AT_FDCWD, inside .. "/area/mine", AT_FDCWD, outside .. "/secret", 2)]],
    options = { write } },
  { 56, "A folder is opened, and a file in it by its descriptor", [[
    local folder = sys("openat", AT_FDCWD, outside, O_PATH)
    try("openat", sys, "openat", folder, "secret", 0)
    try("chdir", function() assert(sys("chdir", outside)) return content "secret" end)
    try("fchdir", function() assert(sys("fchdir", folder)) return content "secret" end)
    try("openat2", sys, "openat2", folder, "secret", string.pack("jjj", 0, 0, 0), 24)
    try("list", function()
      local fd, why = sys("openat", AT_FDCWD, outside, 0x10000)
      if not fd then return nil, why end
      return sys("getdents64", fd, attack.buffer(4096), 4096)
    end)]] },
  { 56, "/proc leads out", [[
    try("root", content, "/proc/self/root" .. outside .. "/secret")
    try("cwd", content, "/proc/self/cwd/../../../../../../../.." .. outside .. "/secret")
    local fd = sys("openat", AT_FDCWD, outside .. "/secret", O_PATH)
    try("fd", content, "/proc/self/fd/" .. fd)
    try("fd of a thread", content, "/proc/thread-self/fd/" .. fd)
    try("another process", content, "/proc/" .. victim .. "/root" .. outside .. "/secret")]] },
  { 56, "/dev/fd leads out", [[
    local fd = sys("openat", AT_FDCWD, outside .. "/secret", O_PATH)
    try("dev", content, "/dev/fd/" .. fd)]], alone = "a descriptor of O_PATH may not be opened" },
  { 56, "A handle of a file is opened", [[
    local handle, id = attack.buffer(136, string.pack("=I4", 128)), attack.buffer(8)
    try("name_to_handle_at", sys, "name_to_handle_at", AT_FDCWD, outside .. "/secret", handle, id, 0)
    local folder = sys("openat", AT_FDCWD, inside, 0x10000)
    try("open_by_handle_at", sys, "open_by_handle_at", folder, handle, 0)]], alone = "only the superuser may" },
  { 56, "A program reads and writes files outside", [[
    local flow = require "flow"
    local function program(...)
      local r = flow.exec({ ... }, { check = false }):await()
      if r.status ~= 0 then return nil, r.stderr end
      return r.stdout
    end
    try("cat", program, "cat", outside .. "/secret")
    try("popen", function() local text = io.popen("cat " .. outside .. "/secret 2>/dev/null"):read "a" return #text > 0 end)
    try("execute", os.execute, "cat " .. outside .. "/secret 2>/dev/null")
    try("sh", program, "sh", "-c", "echo x >" .. outside .. "/secret")
    try("find", program, "find", outside .. "/folder", "-delete")
    try("tool", program, outside .. "/tool")]], options = { run } },
  { 56, "/dev/tcp of bash reaches a server", [[
    local flow = require "flow"
    local r = flow.exec({ "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" .. io.open(inside .. "/port"):read "a" },
      { check = false }):await()
    try("connect", function() return r.status == 0, r.stderr end)]], options = { run } },
  { 57, "/proc/self/environ and /proc/self/mem are read", [[
    try("environ", content, "/proc/self/environ")
    try("maps", content, "/proc/self/maps")
    try("cmdline", content, "/proc/self/cmdline")
    try("mem", io.open, "/proc/self/mem", "r+")
    try("environ of another process", content, "/proc/" .. victim .. "/environ")
    try("mem of another process", io.open, "/proc/" .. victim .. "/mem", "r+")]] },
  { 57, "A variable of the environment is read", [[
    try("getenv", os.getenv, "ATTACK_SECRET")
    -- The system has put the variables before the program's name.
    try("memory", function()
      local size = 65536
      return attack.bytes(attack.auxiliary(31) - size, size):find("for the user" .. " only", 1, true)
    end)]], env = { ATTACK_SECRET = "for the user only" } },
  { 58, "LD_PRELOAD of a program loads code that leaves", [[
    local flow = require "flow"
    local r = flow.exec({ "cat", outside .. "/secret" }, { check = false, env = { LD_PRELOAD = inside .. "/attack.so" } }):await()
    try("read", function() return r.status == 0, r.stderr end)]], options = { run } },
  { 59, "A program that is allowed is overwritten", [[
    local path = "/usr/bin/env"
    try("write", io.open, path, "r+")
    try("append", io.open, path, "a")
    try("flowlua", io.open, binary, "r+")
    try("truncate", function() return is_confined and sys("truncate", binary, 0) end)
    try("replace", function() return is_confined and os.rename(inside .. "/readable", "/usr/bin/flowlua-attack") end)]],
    options = { run }, alone = "it would be overwritten" },
  { 59, "A file that was made is started as a program", [[
    local flow = require "flow"
    local path = temporary .. "/tool"
    local file = assert(io.open(path, "w"))
    file:write "#!/bin/sh\necho started\n"
    file:close()
    try("execve", function() return sys("fchmodat", AT_FDCWD, path, 493) and flow.exec { path }:await() end)]],
    options = { run } },
  { 60, "A descriptor was inherited", [[
    for fd = 3, 20 do
      local text = attack.buffer(100)
      if is_confined or fd == 9 then
        try("read " .. fd, function()
          local count, why = sys("read", fd, text, 100)
          return count and count > 0, why
        end)
      end
    end]], shell = [[
      exec 9<"$(dirname "$(dirname "$(for each; do case $each in */script.lua) echo "$each"; esac; done)")")/outside/secret"
      "$@"; echo "the parent is there: $?"]] },
  { 60, "A descriptor of a folder was inherited as the input", [[
    try("openat", sys, "openat", 0, "secret", 0)]], shell = [[
      "$@" <"$(dirname "$(dirname "$(for each; do case $each in */script.lua) echo "$each"; esac; done)")")/outside"
      echo "the parent is there: $?"]] },
  { 60, "Files outside are changed by their paths", [[
    local path = outside .. "/secret"
    try("truncate", sys, "truncate", path, 1)
    try("open with O_TRUNC", sys, "openat", AT_FDCWD, path, 512)
    try("fchmodat", sys, "fchmodat", AT_FDCWD, path, 384)
    try("fchownat", sys, "fchownat", AT_FDCWD, path, 65534, 65534, 0)
    try("utimensat", sys, "utimensat", AT_FDCWD, path, string.pack("jjjj", 0, 0, 0, 0), 0)
    try("mkdirat", sys, "mkdirat", AT_FDCWD, outside .. "/made", 448)
    try("mknodat", sys, "mknodat", AT_FDCWD, outside .. "/fifo", 4480, 0)
    try("symlinkat", sys, "symlinkat", "x", AT_FDCWD, outside .. "/made link")
    try("unlinkat", sys, "unlinkat", AT_FDCWD, path, 0)]], alone = "only the superuser gives files away" },
  { 60, "Files outside are changed by newer or older calls", [[
    local path = outside .. "/secret"
    try("chmod", sys, "chmod", path, 384)
    try("fchmodat2", sys, "fchmodat2", AT_FDCWD, path, 384, 0)
    try("utime", sys, "utime", path, string.pack("jj", 0, 0))
    try("chown", sys, "chown", path, 0, 0)
    try("setxattr", sys, "setxattr", path, "user.attack", "x", 1, 0)
    try("setxattrat", sys, "setxattrat", AT_FDCWD, path, 0, "user.attack", string.pack("jI4I4", attack.address "x", 1, 0), 16)
    try("file_setattr", sys, "file_setattr", AT_FDCWD, path, string.rep("\0", 24), 24, 0)]], alone = "not every system has all" },
  -- A file that may be read may not be changed.
  { 60, "Files that may only be read are changed", [[
    local path = inside .. "/readable"
    try("write", written, path)
    try("truncate", sys, "truncate", path, 1)
    try("open with O_TRUNC", sys, "openat", AT_FDCWD, path, 512)
    try("fchmodat", sys, "fchmodat", AT_FDCWD, path, 384)
    local fd = assert(sys("openat", AT_FDCWD, path, 0))
    try("ftruncate", function() return is_confined and sys("ftruncate", fd, 1) end)
    try("fsetxattr", sys, "fsetxattr", fd, "user.attack", "x", 1, 0)
    try("futimens", sys, "utimensat", fd, nil, string.pack("jjjj", 0, 0, 0, 0), 0)]], alone = "not every file has attributes" },
  { 60, "The permissions of a file that may only be read are changed by its descriptor", [[
    local fd = assert(sys("openat", AT_FDCWD, inside .. "/readable", 0))
    try("fchmod", sys, "fchmod", fd, 438)]] },
  { 60, "A file outside is opened neither to read nor to write, and changed by its descriptor", [[
    try("openat", sys, "openat", AT_FDCWD, outside .. "/secret", 3)
    local fd = sys("openat", AT_FDCWD, outside .. "/secret", 3)
    if fd then try("fchmod", sys, "fchmod", fd, 511) end]] },
  { 60, "A device is opened neither to read nor to write, and gets a command", [[
    try("openat", sys, "openat", AT_FDCWD, "/dev/ptmx", 3)
    local fd = sys("openat", AT_FDCWD, "/dev/ptmx", 3)
    -- TIOCGPTN
    if fd then try("ioctl", sys, "ioctl", fd, 0x80045430, attack.buffer(8)) end]], alone = "not every system has it" },
  { 60, "The flags of a file that may only be read are changed by its descriptor", [[
    local fd = assert(sys("openat", AT_FDCWD, inside .. "/readable", 0))
    local flags = attack.buffer(8)
    sys("ioctl", fd, 0x80086601, flags)
    local value = string.unpack("j", attack.bytes(flags, 8))
    try("FS_IOC_SETFLAGS", sys, "ioctl", fd, 0x40086602, attack.buffer(8, string.pack("j", value | 0x40 | 0x80)))]],
    alone = "not every file system has flags" },
})
