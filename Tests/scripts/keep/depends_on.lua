-- ctx:depends_on names files that an op has read, such as headers: when one differs, a kept run and the cache execute it again.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local text = [[
flow.keep()
local CompileOp = flow.op("CompileOp", { needs = { source = "file" }, gives = { object = "integer" }, cache = CACHE,
  run = function(ctx)
    effect("compile " .. ctx:get "source")
    local found, text = {}, flow.fs.read(ctx:get "source")
    for header in text:gmatch 'include "([^"]+)"' do
      found[#found + 1] = header
      if flow.fs.exists(header) then text = text .. flow.fs.read(header) end
    end
    ctx:depends_on(found)
    ctx:set("object", #text)
  end })
local run = flow.new("build"):add_grouped(CompileOp, { input = "sources", output = "objects" })
  :run { sources = { "a.c", "b.c" } }
print(table.concat(run.data.objects, " "))
]]


for _, mode in ipairs { "resume", "cache" } do
  local script = kept.script((text:gsub("CACHE", mode == "cache" and "true" or "false")))
  local function write(name, content) flow.fs.write(script.folder .. "/" .. name, content) end
  -- A run that has failed is continued; one with a cache begins again.
  if mode == "resume" then script:write(script.text .. '\nerror("not yet")\n') end
  local function build()
    return script:run { "--follow", mode == "resume" and "--resume" or nil }
  end
  write("a.c", 'include "a.h" include "both.h"')
  write("b.c", 'include "both.h"')
  write("a.h", "1")
  write("both.h", "22")
  build()
  script:expect_effects("compile a.c", "compile b.c")
  local result = build()
  script:expect_effects()
  check.contains(result.stderr, "[CompileOp #1] Kept from run r", "[CompileOp #2] Kept from run r")

  write("a.h", "other")
  result = build()
  script:expect_effects "compile a.c"
  check.contains(result.stderr, "[CompileOp #1] Again: 'a.h' differs", "[CompileOp #2] Kept from run r")
  write("both.h", "333")
  build()
  script:expect_effects("compile a.c", "compile b.c")
  -- Removed, and there again with its earlier content; the time doesn't count.
  flow.fs.remove(script.folder .. "/a.h")
  check.contains(build().stderr, "[CompileOp #1] Again: 'a.h' differs")
  script:expect_effects "compile a.c"
  write("both.h", "333")
  build()
  script:expect_effects()
  write("a.h", "new")
  build()
  script:expect_effects "compile a.c"
end

-- Without a kept run it has no effect; wrong paths are refused, and so is a call in a worker.
local run = flow.op("PlainOp", function(ctx) ctx:depends_on "not there" end):run {}
check.equal(run.ok, true)
local function refused(op, text)
  run = op:start {}
  pcall(run.await, run)
  check.contains(run.error.message, text)
end
local function with(value) return flow.op("WrongOp", function(ctx) ctx:depends_on(value) end) end
refused(with(nil), "bad argument #1 to 'depends_on' (path or list of paths expected, got nil)")
refused(with(7), "bad argument #1 to 'depends_on' (path or list of paths expected, got number)")
refused(with { {} }, "bad argument #1 to 'depends_on' (path or list of paths expected, got table)")
refused(with "", "a path isn't empty, and has no NUL byte")
refused(with { "a\0b" }, "a path isn't empty, and has no NUL byte")
refused(flow.op("WorkerOp", { thread = "worker", run = function(ctx) ctx:depends_on "a" end }),
  "bad use of 'depends_on' (a worker can't report files: give them as an output)")

-- An op that executes one which depends on a file depends on it, too; so does a step of a machine.
local script = kept.script [[
flow.keep { resume = true }
local InnerOp = flow.op("InnerOp", function(ctx)
  effect "inner"
  ctx:depends_on "a.h"
  ctx:set("text", flow.fs.read "a.h")
end)
local OuterOp = flow.op("OuterOp", function(ctx) effect "outer" ctx:execute(InnerOp) end)
local machine = flow.machine { name = "m", start = "read",
  flow.step("read", { run = function(_, ctx) effect "step" ctx:depends_on "b.h" return flow.fs.read "b.h" end }) }
print(OuterOp:run({}).data.text, machine:run().result)
error "not yet"
]]
flow.fs.write(script.folder .. "/a.h", "1")
flow.fs.write(script.folder .. "/b.h", "2")
check.equal(script:run().stdout, "1\t2\n")
script:expect_effects("outer", "inner", "step")
check.equal(script:run().stdout, "1\t2\n")
script:expect_effects()
flow.fs.write(script.folder .. "/a.h", "3")
flow.fs.write(script.folder .. "/b.h", "4")
check.equal(script:run().stdout, "3\t4\n")
script:expect_effects("outer", "inner", "step")
