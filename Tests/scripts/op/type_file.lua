-- The type `file` takes the path of a file that exists; an error names the reason, and `check` runs nothing.
local flow, check = require "flow", require "check"

local folder = flow.fs.temp_dir()
local path, none = folder .. "/a.txt", folder .. "/none"
flow.fs.write(path, "a")

local function mismatch(value, declared)
  local run = flow.new("work"):add(flow.op("UseOp", { needs = { key = declared }, run = function() end })):run { key = value }
  if run.ok then return nil end
  check.equal(run.error.kind, "mismatched_input")
  check.equal(run.error.path, "work/UseOp")
  return run.error.message:match "but NOT type <(.*)>%.$"
end

check.equal(mismatch(path, "file"), nil)
check.equal(mismatch(none, "file"), "file (no such file)")
check.equal(mismatch(folder, "file?"), "file? (it is a directory)")
check.equal(mismatch("a\0b", "file"), "file (the path 'a\\0b' has a NUL byte in it)")
check.equal(mismatch(1, "file"), "file")
check.equal(mismatch({}, "file[]"), nil)
check.equal(mismatch({ path, path }, "file[]"), nil)
check.equal(mismatch({ path, none }, "file[]"), ("file[] (%s: no such file)"):format(none))
check.equal(mismatch({ path, 1 }, "file[]"), "file[]")
check.equal(mismatch(1, "file|integer"), nil)
check.equal(mismatch({ path }, "file|file[]"), nil)
check.equal(mismatch(none, "file|integer"), "file|integer (no such file)")

-- An output, what `ctx:get` asks for, and items in workers.
local run = flow.op("GiveOp", { gives = { out = "file" }, run = function(ctx) ctx:set("out", none) end }):run()
check.equal(run.error.kind, "mismatched_output")
check.contains(run.error.message, ("<out> in data bucket is <%s>"):format(none), "NOT type <file (no such file)>.")
run = flow.op("GetOp", function(ctx) ctx:set("same", ctx:get("key", "file") == path) end):run { key = path }
check.equal(run.data.same, true)
run = flow.op("GetOp", function(ctx) ctx:get("key", "file") end):run { key = none }
check.equal(run.error.kind, "mismatched_input")
for _, thread in ipairs { "main", "worker" } do
  local ItemOp = flow.op("ItemOp", { needs = { item = "file" }, gives = { out = "file" }, thread = thread,
    run = function(ctx) ctx:set("out", ctx:get "item") end })
  run = flow.new("items"):add_grouped(ItemOp, { input = "list", output = "outs", allow_failure = true })
    :run { list = { path, none } }
  check.contains(run:summary(), "[ItemOp #2] DidFinish: withMismatchInputDataType: ", "NOT type <file (no such file)>.")
  check.lacks(run:summary(), "[ItemOp #1] DidFinish: with")
end

-- A file that an op makes later may be named before.
local MakeOp = flow.op("MakeOp", { gives = { out = "string" }, run = function(ctx)
  flow.fs.write(none, "x")
  ctx:set("out", none)
end })
local UseOp = flow.op("UseOp", { needs = { out = "file", given = "file" }, run = function() end })
local later = flow.new("later"):data { given = none }:add(MakeOp):add(UseOp)
check.equal(#later:check(), 0)
check.equal(later:run().ok, true)
local wrong = flow.new("wrong"):data { given = 1, out = none }:add(UseOp):check()
check.equal(#wrong, 1)
check.contains(wrong[1].message, "<given>", "file")

-- Names of metatables near `file` stay such names.
check.equal(mismatch(io.stdout, "FILE*"), nil)
