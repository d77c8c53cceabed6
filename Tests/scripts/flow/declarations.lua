-- A flow declares its needs and outputs as an op does, and inherits them from a single op.
local check = require "check"
local flow = require "flow"
local UploadOp = flow.op("UploadOp", {
  needs = { image = "string", quality = "integer?" }, gives = { url = "string" },
  primary_input = "image",
  run = function(ctx) ctx:set("url", "url_of_" .. ctx:get "image") end,
})
local NoteOp = flow.op("NoteOp", function() end)

local declared = flow.new("declared"):add(NoteOp)
  :needs({ name = "string" }):needs({ age = "integer" }):gives({ token = "string" })
  :primary("name", "token")
check.same(declared:needs(), { name = "string", age = "integer" })
check.same(declared:gives(), { token = "string" })
check.equal(declared.primary_input, "name")
check.equal(declared.primary_output, "token")
local run = declared:run { name = "Ada", age = 36 }
check.equal(run.error.kind, "missing_output")
check.equal(run.error.op, "declared")
check.equal(declared:run({ name = "Ada" }).error.message, "can't find <age> in data bucket")
check.equal(declared:primary(nil, "name").primary_input, "name")
check.equal(declared.primary_output, "name")
check.raises(function() declared:primary() end,
  "bad argument #1 to 'primary' (string expected, got no value)")
check.raises(function() declared:primary("a", 1 == 1) end,
  "bad argument #2 to 'primary' (string expected, got boolean)")
check.raises(function() declared:gives { url = "strng" } end, "did you mean 'string'?")

-- The only op, however deep, and whatever comes at the end.
local single = flow.new("single"):add(UploadOp):add_finally(NoteOp)
local outer = flow.new("outer"):add(single)
for _, each in ipairs { single, outer } do
  check.same(each:needs(), { image = "string", quality = "integer?" })
  check.same(each:gives(), { url = "string" })
  check.equal(each.primary_input, "image")
  check.equal(each.primary_output, "url")
  local group = flow.new("group"):data({ images = { "a", "b" } })
    :add_grouped(each, { input = "images", output = "urls" })
  check.same(group:check(), {})
  check.same(group:run().data.urls, { "url_of_a", "url_of_b" })
end

-- It is the op that checks what is inherited, and check() that misses it.
run = single:run()
check.equal(run.error.op, "UploadOp")
check.contains(run:summary(), "[UploadOp] WillStart\n")
check.equal(single:check()[1].message, "[UploadOp] needs <image> (string), but nothing before provides it")

-- The flow's own declarations go first, key lists and primary keys each.
check.same(flow.new("own"):add(UploadOp):needs({ image = "string" }):needs(), { image = "string" })
check.equal(flow.new("own"):add(UploadOp):primary("quality").primary_input, "quality")
check.equal(flow.new("own"):add(UploadOp):primary("quality").primary_output, "url")

-- Several ops, or one that isn't executed once, leave it open.
for _, each in ipairs {
  flow.new("two"):add(UploadOp):add(NoteOp), flow.new("none"),
  flow.new("case"):case("plan", "pro"):add(UploadOp), flow.new("parallel"):add_parallel(UploadOp),
  flow.new("group"):add_grouped(UploadOp, { input = "images", output = "urls" }),
} do
  check.same(each:needs(), {}, each.name)
  check.same(each:gives(), {}, each.name)
  check.equal(each.primary_input, nil, each.name)
end

-- Copies keep what was declared.
check.equal(declared:copy().primary_input, "name")
check.equal(declared:with({ primary_input = "age" }).primary_input, "age")
check.equal(single:with({ timeout = 5 }).primary_input, "image")
check.equal(single:with({ primary_output = "x" }):run().error.op, "UploadOp")
