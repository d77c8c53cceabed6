-- ILua's kernel executes the cells of Jupyter notebooks with flowlua, and the page's kernel ends with its cleanups.
-- python: ilua.app
-- python: jupyter_client
-- clock: real: it waits for a kernel
local flow, check, notebooks = require "flow", require "check", require "notebook"
local host = require "host"
local fs = flow.fs

-- A home of its own, and the program under test as `flowlua` on the path.
local folder = fs.temp_dir()
local python = os.getenv "FLOWLUA_TEST_PYTHON"
local programs = python:match "^(.*)/"
local binary = flow.exec({ "realpath", host.binary }):await().stdout:gsub("\n", "")
fs.mkdir(folder .. "/bin")
fs.mkdir(folder .. "/home/.local/share/jupyter")
flow.exec({ "ln", "-s", binary, folder .. "/bin/flowlua" }):await()
local environment = {
  HOME = folder .. "/home", PATH = folder .. "/bin:" .. programs .. ":" .. os.getenv "PATH",
  ILUA_LUA_INTERPRETER = "flowlua", LUA_PATH = false,
  JUPYTER_CONFIG_DIR = false, JUPYTER_DATA_DIR = false, JUPYTER_RUNTIME_DIR = false, XDG_DATA_HOME = false,
}

local function is_alive(pid)
  local file <close> = io.open(("/proc/%d/stat"):format(pid))
  return file ~= nil and not (file:read "a"):match "%) Z "
end

-- Waits until processes have ended; they are children of nobody here.
local function await_end(...)
  for _, pid in ipairs { ... } do
    local begin = flow.now()
    while is_alive(pid) do
      assert(flow.now() - begin < 100, "process " .. pid .. " is still there")
      flow.sleep(0.02)
    end
  end
end

local function result(notebook, code)
  local reply = notebook:execute { code = code }
  check.equal(reply.status, "ok", table.concat(reply.error_lines or {}, "\n"))
  return reply.result
end

-- The process of flowlua, which is the parent of what it starts.
local function process(notebook)
  return math.tointeger(tonumber(result(notebook, "return tonumber(flow.exec({ 'sh', '-c', 'echo $PPID' }):await().stdout)")))
end

-- ILua's own kernel, with flowlua unchanged.
do
  local notebook <close> = notebooks.open("lua", environment)
  check.equal(result(notebook, "1+1"), "2")
  check.equal(result(notebook, [[
    flow = require "flow"
    local AnswerOp = flow.op("AnswerOp", function(ctx)
      flow.sleep(0.01)
      ctx:set("answer", 42)
    end)
    return AnswerOp:run().data.answer]]), "42")
  check.equal(notebook:execute { code = 'error "boom"' }.error_lines[1], '(ilua):1: boom')
  check.equal(result(notebook, "flow.sleep(0) return _VERSION"), '"Lua 5.4"')
  local flowlua = process(notebook)
  assert(is_alive(flowlua))
  notebook:shut_down()
  await_end(flowlua)
end

-- The page's kernel: its files, installed by its commands.
local page = fs.read "Sources/FlowScripting/FlowScripting.docc/CommandLine.md"
for name, text in page:gmatch "<!%-%- file: (flowlua%-kernel/%S+) %-%->\n```%l+\n(.-)\n```" do
  fs.mkdir(folder .. "/" .. name:match "^(.*)/")
  fs.write(folder .. "/" .. name, text .. "\n")
end
local commands = page:match "```sh\n(chmod [^\n]+\n[^\n]+kernelspec install[^\n]+)\n"
local function install(name)
  local text = commands:gsub("~/notebooks/bin", programs):gsub("%-%-name flowlua", "--name " .. name)
  flow.exec({ "sh", "-euc", text }, { cwd = folder, env = environment }):await()
end
install "flowlua"
local notebook <close> = notebooks.open("flowlua", environment)
check.equal(result(notebook, "1+1"), "2")

-- Runs are values, and cells wait for them. Locals end with their cell.
check.equal(result(notebook, [[
  local hidden = 1
  WaitOp = flow.op("WaitOp", function(ctx)
    flow.sleep(0.01)
    ctx:set("answer", 42)
  end)
  return WaitOp:run()]]), "run: WaitOp (succeeded)")
check.equal(result(notebook, "return WaitOp, hidden, WaitOp:run().data.answer"), "op: WaitOp\tnil\t42")
check.contains(notebook:execute({ code = "print(WaitOp:run():summary())" }).output, "[WaitOp] DidFinish: successfully",
  "Flow isSuccess: true")
check.equal(result(notebook, [[
  local run = flow.op("WorkOp", { thread = "worker", run = function(ctx) ctx:set("x", 1) end }):run()
  return run.data.x]]), "1")
check.equal(result(notebook, 'flow.exec({ "cat" }):await().stdout'), '""')

-- Errors have a traceback, those of ops too, and the next cell is executed.
local reply = notebook:execute { code = "local function f() error 'boom' end f()" }
check.equal(reply.status, "error")
check.equal(reply.error_lines[1], "(ilua):1: boom")
check.contains(table.concat(reply.error_lines, "\n"), "stack traceback:", "(ilua):1: in main chunk")
reply = notebook:execute { code = 'flow.op("BadOp", function() error("no answer", 0) end):start():await()' }
check.equal(reply.error_lines[1], "[BadOp] no answer")
check.contains(notebook:execute({ code = "x = = 1" }).error_lines[1], "unexpected symbol near '='")
check.equal(result(notebook, "io.read()"), "nil")

-- Tasks continue between cells, print, and are cancelled by a later cell.
result(notebook, [[
  task = flow.spawn(function()
    for i = 1, 3 do flow.sleep(0.01) print("tick " .. i) end
  end)
  slow = flow.op("SlowOp", function() flow.sleep(1000) end):start()]])
check.contains(notebook:output({ text = "tick 3" }).output, "tick 3\n")
check.equal(result(notebook, "return slow"), "run: SlowOp (pending)")
check.equal(result(notebook, "slow:cancel() return slow.ok"), "false")

-- Completion, descriptions, and whether a cell is complete.
check.same(notebook:complete({ code = "x = flow.sle" }).matches, { "flow.sleep" })
check.contains(notebook:inspect({ code = "string.rep" }).text, "string.rep(s, n [, sep])")
check.equal(notebook:is_complete({ code = "for i = 1, 2 do" }).status, "incomplete")
check.equal(notebook:is_complete({ code = "for i = 1, 2 do end" }).status, "complete")
-- An interrupt has no effect.
check.equal(notebook:interrupt().kind, "interrupt_reply")
check.equal(result(notebook, "flow.sleep(0) return 7"), "7")

-- A shutdown leaves no process, of flowlua or of its children, and cleanups are executed; also when a cell is busy
-- with something that never ends.
local function hold(book, name)
  local pids = { process(book) }
  pids[2] = math.tointeger(tonumber(result(book, ([[
    flow.op("HeldOp", function(ctx)
      ctx:defer(function() flow.fs.write(%q, "cleaned up") end)
      flow.sleep(1000)
    end):start()
    sleeper = flow.exec { "sleep", "1000" }
    flow.sleep(0)
    return sleeper.pid]]):format(folder .. "/" .. name))))
  assert(is_alive(pids[1]) and is_alive(pids[2]))
  return pids
end
local pids = hold(notebook, "shut_down")
notebook:begin { code = "print 'busy' while true do end" }
notebook:output { text = "busy" }
notebook:shut_down()
await_end(table.unpack(pids))
check.equal(fs.read(folder .. "/shut_down"), "cleaned up")

-- The kernel is killed: nothing is left either. The file has an option more, as the page says.
local cells = folder .. "/flowlua-kernel/flowlua-cells"
local text, count = fs.read(cells):gsub("flowlua %-e", "flowlua --summary -e")
check.equal(count, 1)
fs.write(cells, text)
install "loud"
do
  local loud <close> = notebooks.open("loud", environment)
  -- The kernel passes on what comes by stderr in its own time, perhaps after the end of the cell.
  loud:begin { code = 'flow.op("AOp", function() end):run()' }
  loud:output { text = "====== Flow Summary ======" }
  pids = hold(loud, "killed")
  loud:kill()
  await_end(table.unpack(pids))
  check.equal(fs.read(folder .. "/killed"), "cleaned up")
end
