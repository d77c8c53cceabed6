-- A program is found on the PATH of its own environment, and has a status whatever the parent of flowlua ignores.
-- clock: real: the virtual clock stands still while a program runs
local flow, fs, check, host = require "flow", require "flow.fs", require "check", require "host"
local dir = fs.temp_dir()
for _, folder in ipairs { "one", "two" } do
  fs.mkdir(dir .. "/" .. folder)
  fs.write(dir .. "/" .. folder .. "/onlyhere", "#!/bin/sh\necho " .. folder .. "\n")
  flow.exec({ "chmod", "755", dir .. "/" .. folder .. "/onlyhere" }):await()
end
local function found(path, cwd)
  return flow.exec({ "onlyhere" }, { env = { PATH = path }, cwd = cwd }):await().stdout
end
check.equal(found(dir .. "/none:" .. dir .. "/two:" .. dir .. "/one:/usr/bin"), "two\n")
check.equal(found("one:two", dir), "one\n")
check.equal(found("", dir .. "/two"), "two\n")
check.raises(function() found("/usr/bin:/bin") end, "onlyhere")
check.raises(function() found "" end, "onlyhere")

-- Started by one that ignores SIGCHLD.
local result = host.run("env", { "--ignore-signal=CHLD", host.binary, "-e", [[
  local flow = require "flow"
  print(flow.exec({ "sh", "-c", "exit 3" }, { check = false }):await().status, flow.exec { "echo", "ran" }:await().stdout)]] })
check.equal(result.stderr, "")
check.equal(result.stdout, "3\tran\n\n")

-- A temporary folder goes although a program has made a part of it read-only.
local text = [[
  local flow = require "flow"
  local dir = flow.fs.temp_dir()
  flow.exec({ "sh", "-c", "mkdir -p a/b/c; echo x >a/b/file; chmod -R a-w a; chmod a-rx a/b/c" }, { cwd = dir }):await()
  print(dir)]]
local words = { host.binary, "-e", text }
-- For the superuser permissions don't count. Somebody without rights may not reach the program itself.
if flow.exec({ "id", "-u" }):await().stdout == "0\n" then
  fs.copy(host.binary, dir .. "/flowlua")
  flow.exec({ "chmod", "755", dir, dir .. "/flowlua" }):await()
  words = { "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", dir .. "/flowlua", "-e", text }
end
local left = flow.exec(words, { env = { TMPDIR = "/tmp" } }):await()
check.equal(left.stderr, "")
check.equal(fs.exists(left.stdout:match "[^\n]+"), false)
