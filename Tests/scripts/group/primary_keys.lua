-- The options as and collect name the keys, or else the op's primary or only input and output.
local flow, check = require "flow", require "check"
local function body(ctx)
  ctx:set("first", "first " .. tostring(ctx:has("a") and ctx:get("a")))
  ctx:set("second", "second " .. tostring(ctx:has("b") and ctx:get("b")))
end
local function result(op, options)
  options.input, options.output = "list", "out"
  local run = flow.new("keys"):data { list = { "x" } }:add_grouped(op, options):run()
  assert(run.ok, run.error)
  return run.data.out[1]
end
local PrimaryOp = flow.op("PrimaryOp", {
  needs = { a = "string?", b = "string?" }, gives = { first = "string", second = "string" },
  primary_input = "b", primary_output = "second", run = body,
})
check.equal(result(PrimaryOp, {}), "second x")
check.equal(result(PrimaryOp, { as = "a" }), "second false")
check.equal(result(PrimaryOp, { as = "a", collect = "first" }), "first x")
local OnlyOp = flow.op("OnlyOp", { needs = { a = "string" }, gives = { first = "string" }, run = body })
check.equal(result(OnlyOp, {}), "first x")
local BareOp = flow.op("BareOp", body)
check.equal(result(BareOp, { as = "b", collect = "second" }), "second x")
