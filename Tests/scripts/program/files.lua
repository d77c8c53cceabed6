-- A program reads a file, writes one, or inherits the input of flowlua.
local flow, check, host = require "flow", require "check", require "host"

local path, other = os.tmpname(), os.tmpname()
local function read(name)
  local file <close> = assert(io.open(name))
  return file:read "a"
end

local result = flow.exec({ "sh", "-c", "echo out; echo err >&2" }, { output = path }):await()
check.equal(read(path), "out\n")
check.equal(result.stdout, nil)
check.equal(result.stderr, "err\n")
result = flow.exec({ "tr", "a-z", "A-Z" }, { stdin = { file = path }, output = other }):await()
check.equal(read(other), "OUT\n")
-- It grows as the program prints, and replaces what was there.
local program = flow.exec({ "sh", "-c", "echo 1; echo ready >&2; read -r x; echo 2" },
  { output = other, stdin = "pipe" })
for line, stream in program:lines() do
  check.equal(stream .. line, "stderrready")
  check.equal(read(other), "1\n")
  program:write "\n"
end
program:await()
check.equal(read(other), "1\n2\n")
-- Relative to the folder of flowlua, not to the program's.
local run = flow.ops.ExecOp({ "pwd" }, { cwd = "/", output = path, stdin = { file = "/dev/null" } }):run()
check.equal(run.ok, true)
check.equal(run.data.stdout, nil)
check.equal(run.data.stderr, "")
check.equal(read(path), "/\n")

-- Bytes that look like a word.
check.equal(flow.exec({ "cat" }, { stdin = { bytes = "inherit" } }):await().stdout, "inherit")
check.equal(flow.exec({ "cat" }, { stdin = { bytes = "" } }):await().stdout, "")

-- Errors of the files are those of the program.
for _, case in ipairs {
  { { output = "/no/such/file" }, "can't write '/no/such/file': No such file or directory", 2 },
  { { output = "/" }, "can't write '/': Is a directory", 21 },
  { { stdin = { file = "/no/such" } }, "can't read '/no/such': No such file or directory", 2 },
} do
  local failed = flow.exec({ "true" }, case[1])
  failed:wait()
  check.equal(failed.error.kind, "error")
  check.equal(failed.error.message, case[2])
  check.equal(failed.error.code, case[3])
end
-- A FIFO without a reader doesn't block the script.
os.remove(path)
flow.exec({ "mkfifo", path }):await()
local failed = flow.exec({ "echo" }, { output = path })
failed:wait()
check.contains(failed.error.message, "can't write '" .. path .. "'")

-- flowlua's own input, from where the script has read a file.
local file = assert(io.open(other, "w"))
file:write "first\nsecond\nthird\n"
file:close()
local text = [[
  local flow = require "flow"
  io.write(io.read "L")
  io.write(flow.exec({ "head", "-n", "1" }, { stdin = "inherit" }):await().stdout)
]]
local inherited = host.run("sh", { "-c", "exec \"$0\" -e \"$1\" <\"$2\"", host.binary, text, other })
check.equal(inherited.stderr, "")
check.equal(inherited.stdout, "first\nsecond\n")
os.remove(path)
os.remove(other)

-- Wrong use.
local function option(name, value)
  return function() flow.exec({ "true" }, { [name] = value }) end
end
check.usage(option("stdin", 1), "#2 to 'exec'", "field 'stdin'", "string", "got number")
check.usage(option("stdin", {}), "field 'stdin'", "{ file = path }")
check.usage(option("stdin", { file = 1 }), "field 'stdin.file'", "string expected", "got number")
check.usage(option("stdin", { file = "a", bytes = "b" }), "field 'stdin'", "{ file = path }")
check.usage(option("stdin", { path = "a" }), "unknown field 'stdin.path'", "'bytes', 'file'")
check.usage(option("stdin", { file = "a\0b" }), "NUL")
check.usage(option("output", 1), "field 'output'", "string expected")
check.usage(option("output", "a\0b"), "NUL")
check.usage(option("tee", 1), "field 'tee'", "boolean expected")
check.usage(function() flow.ops.ExecOp({ "cat" }, { stdin = "pipe" }) end, "#2 to 'ExecOp'", "stdin")
