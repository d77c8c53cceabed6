-- ExecOp runs a program without a shell and sets its status and outputs as bytes.
local flow, check = require "flow", require "check"
local ExecOp = flow.ops.ExecOp

local function exec(...)
  local run = ExecOp(...):run()
  if not run.ok then error(run.error, 2) end
  return run.data
end
local data = exec { "printf", "%s|", "a b", "$HOME", "*", "", "q'\"", 12, 0.5 }
check.equal(data.stdout, "a b|$HOME|*||q'\"|12|0.5|")
check.equal(data.stderr, "")
check.equal(data.status, 0)
check.equal(exec({ "sh", "-c", "echo out; echo err >&2; exit 3" }, { check = false }).status, 3)
check.equal(exec({ "sh", "-c", "kill -9 $$" }, { check = false }).status, 128 + 9)

-- Input, of which it needn't read anything; none is the end of it at once.
local all = {}
for i = 0, 255 do all[#all + 1] = string.char(i) end
all = table.concat(all):rep(4000)
assert(exec({ "cat" }, { stdin = all }).stdout == all)
check.equal(exec({ "cat" }).stdout, "")
check.equal(exec({ "cat" }, { stdin = "" }).stdout, "")
check.equal(exec({ "true" }, { stdin = all }).status, 0)
check.equal(exec({ "head", "-c", "3" }, { stdin = all }).stdout, "\0\1\2")

-- Working directory and environment.
check.equal(exec({ "pwd" }, { cwd = "/" }).stdout, "/\n")
check.equal(exec({ "sh", "-c", "echo $A-$TZ-${LC_ALL:-none}" },
  { env = { A = "1 2", LC_ALL = false } }).stdout, "1 2-UTC-none\n")

-- Failures: command, status or signal, the end of stderr.
local function fails(expected, ...)
  local run = ExecOp(...):run()
  check.equal(run.error.kind, "error")
  check.equal(run.error.op, "ExecOp")
  check.equal(run.error.message, expected)
  return run.data
end
local failed = fails("sh -c 'echo out; echo no >&2; exit 3' exited with status 3: no",
  { "sh", "-c", "echo out; echo no >&2; exit 3" })
check.equal(failed.status, 3)
check.equal(failed.stdout, "out\n")
check.equal(failed.stderr, "no\n")
fails("sh -c 'kill -15 $$' was ended by signal 15 (Terminated)", { "sh", "-c", "kill -15 $$" })
fails("can't run 'no-such-program': no such program on the PATH", { "no-such-program" })
fails("can't run '/no/such': no such program", { "/no/such" })
-- A command line as the name of a program.
fails("can't run 'ls  -l': no such program on the PATH; its arguments are strings of their own: { \"ls\", \"-l\" }", { "ls  -l" })
fails("can't run '/bin/ls -l': no such program; its arguments are strings of their own: { \"/bin/ls\", \"-l\" }", { "/bin/ls -l" })
fails("can't run 'ls | wc': no such program on the PATH; a command line is for a shell: { \"sh\", \"-c\", … }", { "ls | wc" })
fails("can't run 'no such': no such program on the PATH", { "no such", "x" })
fails("can't run '/no/such program': no such program", { "/no/such program" })
fails("can't run '/etc/passwd': not an executable program (Permission denied)", { "/etc/passwd" })
fails("can't run '/': not an executable program (Permission denied)", { "/" })
fails("can't run 'true' in '/no/such': No such file or directory", { "true" }, { cwd = "/no/such" })
fails("can't run 'true' in '/etc/passwd': Not a directory", { "true" }, { cwd = "/etc/passwd" })
local path = os.tmpname()
assert(io.open(path, "w")):write("#!/no/interpreter\n"):close()
assert(os.execute("chmod +x " .. path))
fails("can't run '" .. path .. "': the interpreter in its first line doesn't exist", { path })
assert(io.open(path, "w")):write("echo without a first line\n"):close()
check.contains(ExecOp({ path }):run().error.message, "can't run '" .. path .. "': not a program")
os.remove(path)

-- Wrong use.
check.usage(function() ExecOp() end, "ExecOp", "#1", "table expected", "no value")
check.usage(function() ExecOp "ls" end, "ExecOp", "#1", "table expected", "string")
check.usage(function() ExecOp {} end, "ExecOp", "#1", "name of a program")
check.usage(function() ExecOp { "" } end, "ExecOp", "#1", "name of a program")
check.usage(function() ExecOp { "echo", "a\0b" } end, "ExecOp", "#1", "word #2", "NUL", "a\\0b")
check.usage(function() ExecOp { "echo", nil, "x" } end, "ExecOp", "#1", "list of strings")
check.usage(function() ExecOp { "echo", {} } end, "ExecOp", "#1", "list of strings")
check.usage(function() ExecOp { "echo", x = "y" } end, "ExecOp", "#1", "list of strings")
local function option(name, value) return function() ExecOp({ "true" }, { [name] = value }) end end
for _, case in ipairs {
  { "stdin", 1, "string" }, { "cwd", {}, "string" }, { "cwd", "a\0b", "NUL" }, { "check", "no", "boolean" },
  { "env", "A=1", "table" }, { "env", { 1 }, "names" }, { "env", { A = 1 }, "string or false" },
  { "env", { ["A=B"] = "1" }, "name" }, { "env", { A = "\0" }, "NUL" }, { "chek", false, "check" },
} do
  local ok, raised = pcall(option(case[1], case[2]))
  assert(not ok and raised.kind == "usage", case[1])
  check.contains(raised.message, "exec.lua:", "#2 to 'ExecOp'", case[3])
end
