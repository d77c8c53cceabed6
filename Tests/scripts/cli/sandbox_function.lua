-- `flow.sandbox` restricts a script from inside, after any work on threads that have ended, and only ever narrows.
-- clock: real: one of the scripts has a time limit
local check, host = require "check", require "host"

local function run(options, text)
  local words = { table.unpack(options) }
  words[#words + 1] = "-e"
  words[#words + 1] = text
  return host.run(host.binary, words)
end

-- Threads of flow.fs, of a timeout and of a time limit end before, and continue in the sandbox.
local result = run({ "--time-limit", "20" }, [[
  local flow = require "flow"
  local first = flow.fs.read "/etc/passwd"
  local BusyOp = flow.op("BusyOp", { timeout = 0.01, run = function() while true do end end })
  local early = BusyOp:start()
  early:wait()
  print(early.error.kind)
  flow.sandbox { read = "/etc/hostname" }
  print(#first > 0, pcall(flow.fs.read, "/etc/passwd"))
  print(io.open "/etc/hostname" ~= nil, (io.open "/etc/passwd"))
  local run = BusyOp:start()
  run:wait()
  print(run.error.kind, os.tmpname():find(os.getenv "TMPDIR", 1, true), io.tmpfile():write "x" ~= nil)
  print(io.popen "ls")
  print(os.execute "true")]])
check.equal(result.stderr, "")
check.equal(result.stdout, [[
timeout
true	false	(command line):8: can't read '/etc/passwd': Permission denied (--allow-read)
true	nil
timeout	1	true
nil	ls: Permission denied	13
nil	Permission denied	13
]])

-- The script's changes of the libraries have no effect on it.
result = run({}, [[
  local real = io
  io = { popen = function() end }
  setmetatable(_G, { __index = function(_, name) error("read " .. name) end })
  require "flow".sandbox {}
  package.loaded.io.popen, package.loaded.os.tmpname = function() return "its own" end, nil
  require "flow".sandbox {}
  print(real.popen "ls")
  print(real.open "/etc/passwd")
  -- A function of C with values of its own.
  real.popen = ("ab"):gmatch "."
  require "flow".sandbox {}
  print(real.popen "ls", pcall(real.popen))]])
check.equal(result.stderr, "")
check.equal(result.stdout, "its own\nnil\t/etc/passwd: Permission denied\t13\na\ttrue\tb\n")

-- A call that fails restricts nothing, and one that widens has no effect.
result = run({}, [[
  local flow = require "flow"
  local folder = os.getenv "TMPDIR"
  for _, options in ipairs { { read = "/nowhere" }, { read = "" }, { write = { 1 } }, { read = true }, { net = 1 }, { red = "x" }, 7 } do
    local done, err = pcall(flow.sandbox, options)
    print(done, err.kind, (err.message:gsub("^.-:%d+: ", "")))
  end
  print(os.getenv "TMPDIR" == folder, io.open "/etc/passwd" ~= nil)
  flow.sandbox()
  flow.sandbox { read = "/etc/passwd", net = true, run = true }
  print((io.open "/etc/passwd"), (os.execute "true"))]])
check.equal(result.stderr, "")
check.equal(result.stdout, [[
false	usage	can't enter the sandbox: can't allow reading of '/nowhere': No such file or directory
false	usage	bad argument #1 to 'sandbox' (field 'read': a path is a non-empty string)
false	usage	bad argument #1 to 'sandbox' (field 'write': path or list of paths expected, got number at #1)
false	usage	bad argument #1 to 'sandbox' (field 'read': path or list of paths expected, got boolean)
false	usage	bad argument #1 to 'sandbox' (field 'net': boolean expected, got number)
false	usage	bad argument #1 to 'sandbox' (unknown field 'red' (did you mean 'read'?))
false	usage	bad argument #1 to 'sandbox' (table expected, got number)
true	true
nil	nil
]])

-- Workers have threads that stay.
result = run({}, [[
  local flow = require "flow"
  flow.op("WorkOp", { thread = "worker", run = function() end }):run()
  local done, err = pcall(flow.sandbox, {})
  print(done, err.kind, io.open "/etc/passwd" ~= nil)]])
check.equal(result.stdout, "false\tusage\ttrue\n")

-- Errors name the permission that is missing: for reading where a file is only read, and for writing where none can be made.
result = run({}, [[
  local flow = require "flow"
  local fs = flow.fs
  flow.sandbox {}
  local temporary = os.getenv("TMPDIR"):gsub("%p", "%%%0")
  -- Some kernels refuse a move as one to another device.
  local function say(...)
    local message = tostring(select(2, pcall(...))):gsub(temporary, "TMPDIR"):gsub("^.-:%d+: ", "")
    print((message:gsub("Invalid cross%-device link", "Permission denied")))
  end
  say(fs.hash, "/etc/passwd")
  say(fs.copy, "/etc/passwd", os.getenv "TMPDIR" .. "/copy")
  say(fs.read, "/etc/passwd")
  say(fs.list, "/etc")
  say(fs.lock, "/etc/passwd")
  say(fs.lock, "/etc/none")
  fs.write(os.getenv "TMPDIR" .. "/file", "x")
  say(fs.copy, os.getenv "TMPDIR" .. "/file", "/etc/none")
  say(fs.rename, os.getenv "TMPDIR" .. "/file", "/etc/none")
  say(fs.write, "/etc/none", "x")
  say(fs.mkdir, "/etc/none")
  say(fs.remove, "/etc/passwd")]])
check.equal(result.stderr, "")
check.equal(result.stdout, [[
can't hash '/etc/passwd': Permission denied (--allow-read)
can't copy '/etc/passwd': Permission denied (--allow-read)
can't read '/etc/passwd': Permission denied (--allow-read)
can't list '/etc': Permission denied (--allow-read)
can't lock '/etc/passwd': Permission denied (--allow-read)
can't lock '/etc/none': Permission denied (--allow-write)
can't copy 'TMPDIR/file' to '/etc/none': Permission denied (--allow-write)
can't rename 'TMPDIR/file' to '/etc/none': Permission denied (--allow-write)
can't write '/etc/none': Permission denied (--allow-write)
can't make folder '/etc/none': Permission denied (--allow-write)
can't remove '/etc/passwd': Permission denied (--allow-write)
]])
