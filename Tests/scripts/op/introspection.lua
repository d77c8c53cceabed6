-- The declarations of an op can be read as copies in their original form.
local check = require "check"
local flow = require "flow"

local function even(value) return value % 2 == 0, "an even number" end
local UploadOp = flow.op("UploadOp", {
  doc = "Uploads one image.",
  needs = { image = "string", quality = "integer | float?", size = even },
  gives = { url = "string" },
  primary_input = "image",
  retry = { attempts = 3, delay = 0.5, max_delay = 30 },
  timeout = 10,
  grace = 5,
  run = function() end,
})
check.equal(UploadOp.name, "UploadOp")
check.equal(UploadOp.doc, "Uploads one image.")
check.same(UploadOp.needs, { image = "string", quality = "integer | float?", size = even })
check.same(UploadOp.gives, { url = "string" })
check.equal(UploadOp.primary_input, "image")
check.equal(UploadOp.primary_output, "url")
check.same(UploadOp.retry, { attempts = 3, delay = 0.5, factor = 1.0, max_delay = 30.0, jitter = 0.0 })
check.equal(UploadOp.timeout, 10.0)
check.equal(UploadOp.grace, 5.0)
check.equal(UploadOp.thread, "main")
-- Ops of the library have a description, as a class and when they are made.
for _, op in pairs(flow.ops) do check.equal(type(op.doc), "string") end
check.equal(flow.ops.PrintOp("hello").doc, flow.ops.PrintOp.doc)
check.equal(flow.ops.SleepOp(1).doc, flow.ops.SleepOp.doc)
check.equal(flow.ops.ExecOp({ "true" }).doc, flow.ops.ExecOp.doc)
check.equal(flow.ops.HTTPOp({ url = "http://localhost" }).doc, flow.ops.HTTPOp.doc)
UploadOp.needs.image = "integer"
check.equal(UploadOp.needs.image, "string")

local function field(op, name) return op[name] end
local PlainOp = flow.op("PlainOp", function() end)
for _, name in ipairs { "doc", "primary_input", "primary_output", "retry", "timeout", "grace", "other" } do
  check.equal(field(PlainOp, name), nil, name)
end
check.same(PlainOp.needs, {})
check.same(PlainOp.gives, {})
check.raises(function() PlainOp.timeout = 5 end, "can't set field 'timeout' of op")

-- So an op can be made like another one.
local CopyOp = flow.op("CopyOp", {
  needs = UploadOp.needs, gives = UploadOp.gives, retry = UploadOp.retry,
  run = function(ctx) ctx:set("url", "x") end,
})
check.equal(CopyOp:run({ image = "a", size = 3 }).error.message,
  "<size> in data bucket is <3> with type <integer>, but NOT type <an even number>.")
check.equal(CopyOp:run({ image = "a", size = 2, quality = 0.5 }).ok, true)

-- Ops of other kinds.
check.equal(PlainOp:with({ thread = "worker" }).thread, "worker")
check.equal(PlainOp:with({ thread = "worker" }):with({ thread = "main" }).thread, "main")
check.same(flow.ops.ReadFileOp.needs, { path = "string" })
check.same(flow.ops.ReadFileOp.gives, { content = "string" })
check.equal(flow.ops.ReadFileOp.thread, "main")
local walk = flow.machine {
  name = "walk", start = "a", needs = { n = "integer" }, retry = 2,
  flow.step("a", { run = function() end }),
}
check.same(walk.needs, { n = "integer" })
check.equal(walk.retry.attempts, 2)
check.equal(walk.primary_input, "n")

-- A copy has what it wasn't given; an unknown field is an error.
local RenamedOp = UploadOp:with { name = "RenamedOp", timeout = 1, primary_output = "size" }
check.equal(RenamedOp.name, "RenamedOp")
check.equal(RenamedOp.timeout, 1.0)
check.equal(RenamedOp.retry.attempts, 3)
check.equal(RenamedOp.primary_input, "image")
check.equal(RenamedOp.primary_output, "size")
check.raises(function() UploadOp:with { tiemout = 1 } end,
  "unknown field 'tiemout' (did you mean 'timeout'?)")

-- A dispatcher's fields.
local dispatcher = flow.dispatcher { input = "images", output = "urls", failures = "bad" }
check.equal(dispatcher.input, "images")
check.equal(dispatcher.output, "urls")
check.equal(dispatcher.max_concurrent, 3)
check.equal(dispatcher.allow_failure, false)
check.equal(dispatcher.allow_empty, false)
check.equal(dispatcher.failures, "bad")
for _, name in ipairs { "as", "collect", "absent", "other" } do
  check.equal(field(dispatcher, name), nil, name)
end
dispatcher = flow.dispatcher {
  input = "a", max_concurrent = 9, allow_failure = true, allow_empty = true, as = "item",
  collect = "result", output = "b", absent = false,
}
check.equal(dispatcher.max_concurrent, 9)
check.equal(dispatcher.allow_failure, true)
check.equal(dispatcher.allow_empty, true)
check.equal(dispatcher.as, "item")
check.equal(dispatcher.absent, false)
check.equal(dispatcher.collect, "result")
