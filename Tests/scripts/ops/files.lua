-- WriteFileOp and ReadFileOp keep all bytes and permissions and leave no temporary files.
local flow, check = require "flow", require "check"
local ReadFileOp, WriteFileOp = flow.ops.ReadFileOp, flow.ops.WriteFileOp
local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function output(command)
  local pipe <close> = io.popen(command)
  return pipe:read("a")
end
local all = {}
for i = 0, 255 do all[#all + 1] = string.char(i) end
all = table.concat(all)

for _, content in ipairs { "", "x", all, all:rep(20000) } do
  local path = folder .. "/a b\xff\n"
  local written = WriteFileOp:run { path = path, content = content }
  assert(written.ok, written.error)
  local read = ReadFileOp:run { path = path }
  assert(read.ok, read.error)
  assert(read.data.content == content)
end
check.equal(output("ls -A " .. folder .. " | wc -l"), "2\n") -- the name has a newline in it

-- A new file has what the umask leaves, an old one what it had; a link stays one.
local path = folder .. "/mode"
assert(WriteFileOp:run({ path = path, content = "1" }).ok)
check.equal(output("umask 0; touch " .. folder .. "/new; stat -c %a " .. folder .. "/new"), "666\n")
assert(os.execute("chmod 751 " .. path .. " && ln -s mode " .. folder .. "/link"))
assert(WriteFileOp:run({ path = folder .. "/link", content = "2" }).ok)
check.equal(output("stat -c %a " .. path .. "; cat " .. path .. "; readlink " .. folder .. "/link"),
  "751\n2mode\n")

-- An op that can't do its work says so with the path and the reason.
local function fails(op, data, ...)
  local run = op:run(data)
  check.equal(run.error.kind, "error")
  check.equal(run.error.op, op.name)
  for _, part in ipairs { ... } do check.contains(run.error.message, part) end
end
fails(ReadFileOp, { path = folder .. "/none" }, "can't read '" .. folder .. "/none': No such file")
fails(ReadFileOp, { path = folder }, "can't read '" .. folder .. "': Is a directory")
fails(ReadFileOp, { path = "" }, "can't read '': No such file")
fails(ReadFileOp, { path = "a\0b" }, "'a\\0b'", "NUL")
fails(WriteFileOp, { path = folder, content = "" }, "can't write", "Is a directory")
fails(WriteFileOp, { path = folder .. "/no/where", content = "" }, "can't write", "No such file")
fails(WriteFileOp, { path = path .. "/x", content = "" }, "can't write", "Not a directory")
fails(WriteFileOp, { path = "a\0b", content = "" }, "NUL")
fails(WriteFileOp, { path = ("x"):rep(300), content = "" }, "can't write", "File name too long")
fails(WriteFileOp, { path = "/dev/null", content = "" }, "not a regular file")
check.equal(ReadFileOp:run().error.kind, "insufficient_input")
check.equal(WriteFileOp:run({ path = path, content = 1 }).error.kind, "mismatched_input")
check.equal(output("ls -A " .. folder .. " | grep -c tmp"), "0\n")

-- Many at once, as members of a group, and a pipe, whose end comes when its writer says so.
local paths = {}
for i = 1, 200 do paths[i] = path end
local run = flow.new("many"):data { paths = paths }
  :add_grouped(ReadFileOp, { input = "paths", output = "contents", max_concurrent = 50 }):run()
check.equal(table.concat(run.data.contents), ("2"):rep(200))
assert(os.execute("mkfifo " .. folder .. "/pipe; (sleep 0.05; echo piped) > " .. folder .. "/pipe &"))
check.equal(ReadFileOp:run({ path = folder .. "/pipe" }).data.content, "piped\n")
check.contains(ReadFileOp:run({ path = "/proc/self/status" }).data.content, "Name:\tflowlua")
assert(os.execute("rm -r " .. folder))
