-- With allow_failure failed items are left out, and failures collects them.
local flow, check = require "flow", require "check"
local reason = {}
local EvenOp = flow.op("EvenOp", {
  needs = { n = "integer" }, gives = { half = "integer" },
  run = function(ctx)
    local n = ctx:get("n")
    flow.sleep(0.001 * (6 - ctx.index))
    if n % 2 == 1 then error(reason) end
    ctx:set("half", n // 2)
  end,
})
local run = flow.new("even"):data { list = { 10, 11, 12, 13, 14 } }
  :add_grouped(EvenOp, flow.dispatcher {
    input = "list", output = "halves", max_concurrent = 5, allow_failure = true, failures = "odd",
  }):run()
assert(run.ok, run.error)
check.same(run.data.halves, { 5, 6, 7 })
check.equal(#run.data.odd, 2)
for i, index in ipairs { 2, 4 } do
  local failure = run.data.odd[i]
  check.equal(failure.index, index)
  check.equal(failure.input, 9 + index)
  check.equal(failure.error.kind, "error")
  assert(rawequal(failure.error.cause, reason))
end
check.contains(run:summary(), "[FlowArrayGroupDispatcher] all finished. output size: 3\n")
