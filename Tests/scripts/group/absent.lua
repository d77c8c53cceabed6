-- The value `absent` replaces missing outputs and failed items, so that results align with items.
-- An output that is declared optional may be missing.
local flow, check = require "flow", require "check"
for _, thread in ipairs { "main", "worker" } do
  local function group(declared, options, retry)
    local FindOp = flow.op("FindOp", {
      needs = { n = "integer" }, gives = { found = declared }, thread = thread, retry = retry,
      run = function(ctx)
        local n = ctx:get "n"
        if n % 3 == 0 then ctx:fail("no " .. n) end
        if n % 2 == 0 then ctx:set("found", "f" .. n) end
      end,
    })
    options.input, options.output = "ns", "found"
    return flow.new("g"):data { ns = options.ns or { 1, 2, 4, 5 } }
      :add_grouped(FindOp, { input = "ns", output = "all", allow_failure = options.allow_failure,
        failures = options.failures, absent = options.absent })
  end
  local function all(...)
    local run = group(...):run()
    assert(run.ok, run.error)
    check.contains(run:summary(), "all finished. output size: " .. #run.data.all .. "\n")
    return run.data.all, run
  end

  for _, retry in ipairs { 1, 2 } do
    -- They are left out of the list, or the value replaces them.
    check.same(all("string?", {}, retry), { "f2", "f4" })
    check.same(all("string?", { absent = "none" }, retry), { "none", "f2", "f4", "none" })
    check.same(all("string?", { absent = false }, retry), { false, "f2", "f4", false })
    check.same(all("string?", { ns = { 1, 5 } }, retry), {})
    -- Failed items likewise.
    local lenient = { ns = { 1, 2, 3, 4, 6 }, allow_failure = true, failures = "bad" }
    check.same(all("string?", lenient, retry), { "f2", "f4" })
    lenient.absent = 0
    local list, run = all("string?", lenient, retry)
    check.same(list, { 0, "f2", 0, "f4", 0 })
    check.equal(#run.data.bad, 2)
    check.equal(run.data.bad[2].index, 5)
    check.equal(run.data.bad[2].error.message, "no 6")
  end

  -- An output that isn't optional is missing as before, `absent` or not.
  local run = group("string", { absent = "none" }):run()
  check.equal(run.error.kind, "missing_output")
  check.same(all("string", { allow_failure = true }), { "f2", "f4" })
  check.same(all("string", { allow_failure = true, absent = "-" }), { "-", "f2", "f4", "-" })
  -- Nor may it be of another type.
  run = group("integer?", {}):run()
  check.equal(run.error.kind, "mismatched_output")
  -- A secret in their place makes the list one.
  run = group("string?", { absent = flow.secret "hidden-value" }):run()
  check.same(run.data.all, { "hidden-value", "f2", "f4", "hidden-value" })
  check.lacks(run:summary(), "hidden-value")
end

-- A table as absent value is one table; a flow that ends early leaves nothing.
local nothing = {}
local early = flow.new("early"):needs { n = "integer" }:case("kind", "never"):add(flow.op("NeverOp", function() end))
local run = flow.new("g"):data { ns = { 1, 2 } }
  :add_grouped(early, { input = "ns", output = "all", collect = "x", absent = nothing }):run()
assert(run.ok, run.error)
assert(rawequal(run.data.all[1], nothing) and rawequal(run.data.all[2], nothing))

-- The facts that are known before: the type of the list, and what is drawn.
local MaybeOp = flow.op("MaybeOp", { needs = { n = "integer" }, gives = { s = "string?" }, run = function() end })
local UseOp = flow.op("UseOp", { needs = { all = "string[]" }, run = function() end })
local function plan(absent)
  return flow.new("p"):data { ns = { 1 } }
    :add_grouped(MaybeOp, flow.dispatcher { input = "ns", output = "all", absent = absent }):add(UseOp)
end
check.equal(#plan(nil):check(), 0)
check.equal(#plan("-"):check(), 0)
local NumbersOp = flow.op("NumbersOp", { needs = { all = "integer[]" }, run = function() end })
check.equal(plan("-"):add(NumbersOp):check()[1].op, "NumbersOp")
check.contains(plan("-"):dot(), "absent = -")
check.lacks(plan(nil):dot(), "absent")

-- The value needs an output to replace.
check.usage(function() flow.dispatcher { input = "ns", absent = 1 } end, "dispatcher", "'absent'", "output")
