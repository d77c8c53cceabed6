-- A program inherits no descriptors or signal dispositions and has its own process group.
-- In flowlua io.popen and os.execute still work, and there are no zombies.
local flow, check = require "flow", require "check"
local ExecOp = flow.ops.ExecOp
local file <close> = assert(io.open("/etc/passwd"))
local pipe = io.popen("sleep 0.05; exit 7")
check.equal(ExecOp({ "sh", "-c", "ls /proc/$$/fd" }):run().data.stdout, "0\n1\n2\n")
local status = ExecOp({ "cat", "/proc/self/status" }):run().data.stdout
for _, field in ipairs { "SigBlk", "SigIgn" } do
  check.equal(tonumber(status:match(field .. ":%s*(%x+)"), 16), 0, field)
end
local stat = ExecOp({ "cat", "/proc/self/stat" }):run().data.stdout
local pid, group = stat:match("^(%d+) .- %u %d+ (%d+)")
check.equal(group, pid)
local ok, what, code = pipe:close()
check.equal(ok, nil)
check.equal(what, "exit")
check.equal(code, 7)
check.equal(select(3, os.execute("exit 5")), 5)

-- A hundred at once, and afterwards there is no zombie.
local words = {}
for i = 1, 100 do words[i] = tostring(i) end
local EchoOp = flow.op("EchoOp", { needs = { word = "string" }, gives = { said = "string" },
  run = function(ctx)
    local run = ExecOp({ "echo", ctx:get("word") }):run()
    ctx:set("said", run.data.stdout)
  end })
local run = flow.new("many"):data { words = words }
  :add_grouped(EchoOp, { input = "words", output = "said", max_concurrent = 100 }):run()
check.equal(table.concat(run.data.said), table.concat(words, "\n") .. "\n")
local children <close> = io.popen("cat /proc/$PPID/task/*/children")
check.equal(select(2, children:read("a"):gsub("%d+", "")), 1) -- the cat's own shell
