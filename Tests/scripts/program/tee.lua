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
  local started, isOpen = 0, false
  local SayOp = flow.op("SayOp", { needs = { n = "integer" }, run = function(ctx)
    local program = flow.exec(
      { "sh", "-c", "read -r x; for i in 1 2 3; do echo $0 $i; done", ctx:get "n" },
      { tee = true, stdin = "pipe" })
    started = started + 1
    while not isOpen do flow.sleep(0.001) end
    program:write "\n"
    program:await()
  end })
  local run = flow.new("all"):data { ns = { 1, 2, 3 } }:add_grouped(SayOp, { input = "ns" }):start()
  while started < 3 do flow.sleep(0.001) end
  flow.exec({ "sh", "-c", "echo later" }, { tee = true }):await()
  isOpen = true
  assert(run:wait() and run.ok)
  flow.exec({ "echo", "alone" }, { tee = true }):await()
]]
check.equal(result.stderr, "")
for n = 1, 3 do
  local lines = {}
  for line in result.stdout:gmatch(("%%[SayOp #%d%%] ([^\n]*)\n"):format(n)) do lines[#lines + 1] = line end
  check.equal(table.concat(lines, "|"), ("%d 1|%d 2|%d 3"):format(n, n, n))
end
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

-- A long line appears in pieces before its end, and has the name once.
for _, last in ipairs { "end\\nnext\\n", "end" } do
  result = run(([[
    local beside = flow.exec({ "cat" }, { tee = true, stdin = "pipe" })
    local p = flow.exec(
      { "sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x; read -r line; printf '%s'" },
      { tee = true, stdin = "pipe", capture = false })
    local function size() return flow.fs.stat("/proc/self/fd/1", { follow = true }).size end
    local limit = flow.now() + 10
    while size() < 100000 and flow.now() < limit do flow.sleep(0.001) end
    assert(size() >= 100000, "nothing is written before the end of the line")
    p:write "\n"
    p:await()
    beside:close_stdin()
    beside:await()
  ]]):format(last))
  check.equal(result.stdout,
    "[sh] " .. ("x"):rep(200000) .. (last == "end" and "end\n" or "end\n[sh] next\n"))
end

-- Text that a carriage return lets overwrite the name is written after the name again.
result = run [[
  local beside = flow.exec({ "cat" }, { tee = true, stdin = "pipe" })
  flow.exec({ "printf", "10%%\r20%%\rdone\r\n\r\n" }, { tee = true }):await()
  beside:close_stdin()
  beside:await()
  flow.exec({ "printf", "10%%\r20%%\n" }, { tee = true }):await()
]]
check.equal(result.stdout, "[printf] 10%\r[printf] 20%\r[printf] done\r\n[printf] \r\n10%\r20%\n")
