-- Files that ops are given and make count by content: an edited source, an object that was changed or removed.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

-- Files that items use on the loop and in workers.
local text = [[
flow.keep()
local CompileOp = flow.op("CompileOp", { needs = { source = "file" }, gives = { object = "file" }, cache = true,
  thread = THREAD,
  run = function(ctx)
    local source = ctx:get "source"
    effect("compile " .. source)
    local object = source:gsub("c$", "o")
    flow.fs.write(object, flow.fs.read(source):upper())
    ctx:set("object", object)
  end })
local LinkOp = flow.op("LinkOp", { needs = { objects = "file[]" }, gives = { program = "file" }, cache = true,
  run = function(ctx)
    effect "link"
    local parts = {}
    for i, object in ipairs(ctx:get "objects") do parts[i] = flow.fs.read(object) end
    flow.fs.write("program", table.concat(parts))
    ctx:set("program", "program")
  end })
local run = flow.new("build"):add_grouped(CompileOp, { input = "sources", output = "objects" })
  :add(LinkOp):run { sources = { "a.c", "b.c" } }
print(flow.fs.read(run.data.program))
]]

for _, thread in ipairs { "main", "worker" } do
  local script = kept.script((text:gsub("THREAD", ("%q"):format(thread))))
  local function write(name, content) flow.fs.write(script.folder .. "/" .. name, content) end
  local function build() return script:run { "--follow" } end
  write("a.c", "a")
  write("b.c", "b")
  check.equal(build().stdout, "AB\n")
  script:expect_effects("compile a.c", "compile b.c", "link")
  local result = build()
  check.equal(result.stdout, "AB\n")
  script:expect_effects()
  check.contains(result.stderr, "[CompileOp #2] Kept from run r", "[LinkOp] Kept from run r")
  -- Nothing that wasn't set is kept as if it had been.
  check.lacks(result.stderr, "replace for objects")

  -- An edited source. The object is another file then, so the program is made again.
  write("b.c", "bb")
  check.equal(build().stdout, "ABB\n")
  script:expect_effects("compile b.c", "link")
  -- The content counts, not the time.
  write("a.c", "a")
  build()
  script:expect_effects()
  -- An older source: its object is no longer what it was made to.
  write("b.c", "b")
  check.contains(build().stderr, "[CompileOp #2] Again: <object> (b.o) was changed",
    "[LinkOp] Again: <program> (program) was changed")
  script:expect_effects("compile b.c", "link")

  write("a.o", "x")
  check.contains(build().stderr, "[CompileOp #1] Again: <object> (a.o) was changed", "[LinkOp] Kept from run r")
  script:expect_effects("compile a.c")
  flow.fs.remove(script.folder .. "/program")
  check.contains(build().stderr, "[LinkOp] Again: <program> (program) was removed")
  script:expect_effects "link"

  -- A source of another name with the same content is another input.
  write("c.c", "a")
  script:edit([["a.c", "b.c"]], [["c.c", "b.c"]])
  check.equal(build().stdout, "AB\n")
  script:expect_effects("compile c.c", "link")
  check.equal(script:run({ "--verify" }).stdout:match "^verified %d+ runs", "verified 8 runs")
end

-- A resumed run says which file differs, and a changed file of an op that is executed only once stops the run.
local resumed = kept.script [[
local SignOp = flow.op("SignOp", { needs = { document = "file" }, gives = { signature = "file" }, effect = "once",
  run = function(ctx)
    effect "sign"
    flow.fs.write("signature", "signed " .. flow.fs.read(ctx:get "document"))
    ctx:set("signature", "signature")
  end })
local CopyOp = flow.op("CopyOp", { needs = { document = "file", copy = "file?" }, gives = { copy = "file?" },
  run = function(ctx)
    effect "copy"
    flow.fs.copy(ctx:get "document", "copy")
    ctx:set("copy", "copy")
  end })
local TouchOp = flow.op("TouchOp", { needs = { log = "file" }, gives = { log = "file" }, run = function(ctx)
  effect "touch"
  flow.fs.write(ctx:get "log", "touched")
end })
local FailOp = flow.op("FailOp", function(ctx) ctx:fail "stop" end)
flow.new("work"):add(SignOp):add(CopyOp):add(TouchOp):add(FailOp):run { document = "text", log = "log" }
]]
local function set(name, content) flow.fs.write(resumed.folder .. "/" .. name, content) end
set("text", "one")
set("log", "")
resumed:run { "--keep" }
resumed:expect_effects("sign", "copy", "touch")
-- The op has changed what it was given, without setting its key.
check.contains(resumed:resume(), "[SignOp] Kept from run", "[CopyOp] Kept from run", "[TouchOp] Again: <log> (log) differs")
resumed:expect_effects "touch"
set("signature", "forged")
check.contains(resumed:resume(), "[work/SignOp] had finished in run r", ", but <signature> (signature) was changed: done, again or fail?")
resumed:expect_effects()
check.contains(resumed:resume { "--settle", "SignOp=done" }, "[SignOp] Kept from run", "settled as done")
check.contains(resumed:resume(), "[SignOp] Kept from run")
resumed:effects()
set("text", "two")
check.contains(resumed:resume { "--settle", "SignOp=again" }, "[SignOp] Again: <document> (text) differs",
  "[CopyOp] Again: <document> (text) differs")
resumed:expect_effects("sign", "copy")

-- Trusted code doesn't make a changed file right.
resumed:edit([["signed " ..]], [["Signed " ..]])
resumed:edit([[effect "copy"]], [[effect  "copies"]])
set("copy", "x")
check.contains(resumed:resume { "--trust-code", "--settle", "SignOp=done" }, "[SignOp] Kept from run",
  "[CopyOp] Again: <copy> (copy) was changed")

-- An op whose file is gone when it ends isn't kept, and a warning says so.
local gone = kept.script [[
local GoneOp = flow.op("GoneOp", { gives = { out = "file" }, run = function(ctx)
  effect "gone"
  flow.fs.write("out", "x")
  ctx:set("out", "out")
  ctx:defer(function() flow.fs.remove "out" end)
end })
flow.new("work"):add(GoneOp):run()
]]
local result = gone:run { "--keep" }
check.equal(result.status, 0)
check.contains(result.stderr, "[GoneOp] isn't kept, so a resumed run executes it again: "
  .. "<out> (out), which it has made, was removed or can't be read")

-- A stop ends the reading of a large file, before an op and before an item in a worker.
local large = kept.script [[
local ReadOp = flow.op("ReadOp", { needs = { source = "file" }, run = function() effect "read" end })
flow.exec { "truncate", "-s", "64G", "large" }:await()
local started = flow.now()
local one = flow.new("one"):add(ReadOp):with { timeout = 0.05 }:run { source = "large" }
local items = flow.new("items"):add_grouped(ReadOp:with { thread = "worker" }, { input = "sources" })
  :with { timeout = 0.05 }:run { sources = { "large" } }
flow.fs.remove "large"
print(one.error.kind, items.error.kind, flow.now() - started < 60)
]]
check.equal(large:run({ "--keep" }).stdout, "timeout\ttimeout\ttrue\n")
large:expect_effects()
