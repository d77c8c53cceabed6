-- With tee the output is collected and goes to the terminal too, in lines, named if several run.
local check, host = require "check", require "host"

local function run(text)
  local result = host.script("local flow = require 'flow'\n" .. text)
  check.equal(result.status, 0, result.stderr)
  return result
end
local function sorted(text)
  local lines = {}
  for line in text:gmatch "([^\n]*)\n" do lines[#lines + 1] = line end
  table.sort(lines)
  return table.concat(lines, "|")
end

local result = run [[
  io.write "before "
  local p = flow.exec({ "sh", "-c", "printf 'a\\nb'; printf '\\0c' >&2" }, { tee = true })
  assert(p:await().stdout == "a\nb" and p.stderr == "\0c")
  p = flow.exec({ "echo", "not kept" }, { tee = true, capture = false })
  assert(p:await().stdout == nil)
  p = flow.exec({ "sh", "-c", "echo failed >&2; exit 3" }, { tee = true, capture = false })
  p:wait()
  assert(p.error.message:find ": failed$" and p.error.stderr == nil)
  p = flow.exec({ "sh", "-c", "echo lines; echo file" }, { tee = true })
  local lines = {}
  for line in p:lines() do lines[#lines + 1] = line end
  print(table.concat(lines, ";"))
]]
check.equal(result.stdout, "before a\nb\nnot kept\nlines\nfile\nlines;file\n")
check.equal(result.stderr, "\0c\nfailed\n")

-- Several at a time: no line is mixed with another, and each has the name of its op.
result = run [[
  local SayOp = flow.op("SayOp", { needs = { n = "integer" }, run = function(ctx)
    flow.exec({ "sh", "-c", "for i in 1 2 3; do echo $0 $i; done; read -r x", ctx:get "n" },
      { tee = true, stdin = "pipe" }):await()
  end })
  local run = flow.new("all"):data { ns = { 1, 2, 3 } }:add_grouped(SayOp, { input = "ns" }):start()
  flow.sleep(0)
  local last = flow.exec({ "sh", "-c", "echo later" }, { tee = true })
  last:wait()
  run:cancel()
  run:wait()
  flow.exec({ "echo", "alone" }, { tee = true }):await()
]]
check.equal(result.stderr, "")
check.contains(result.stdout, "[SayOp #1] 1 1\n[SayOp #1] 1 2\n")
check.contains(result.stdout, "[sh] later\n")
check.equal(result.stdout:match "[^\n]*\n$", "alone\n")
assert(not result.stdout:gsub("alone\n", ""):gsub("%[SayOp #(%d)%] %1 %d\n", "")
  :gsub("%[sh%] later\n", ""):find ".")

-- An op, and the file of another one.
local path = os.tmpname()
result = run(([[
  local ExecOp = flow.ops.ExecOp
  local run = flow.new("build")
    :add_parallel(ExecOp({ "echo", "one" }, { tee = true }), ExecOp({ "echo", "two" }, { tee = true }))
    :run()
  assert(run.ok)
  run = ExecOp({ "sh", "-c", "echo file; echo shown >&2" }, { tee = true, output = %q }):run()
  assert(run.ok and run.data.stderr == "shown\n")
]]):format(path))
check.equal(sorted(result.stdout:gsub("%[ExecOp[^]]*%] ", "")), "one|two")
check.equal(result.stderr, "shown\n")
local file <close> = assert(io.open(path))
check.equal(file:read "a", "file\n")
os.remove(path)
