-- check() lists the mistakes of a flow in the order of its steps and runs nothing.
local flow, check = require "flow", require "check"

local function op(name, needs, gives)
  return flow.op(name, { needs = needs, gives = gives or { other = "any" }, run = function()
    error("a check has run " .. name)
  end })
end

-- The findings as "severity op: message", compared one by one.
local function finds(blueprint, data, expected)
  local found = blueprint:check(data)
  for i, finding in ipairs(found) do
    local keys = 0
    for _ in pairs(finding) do keys = keys + 1 end
    check.equal(keys, 3, "fields of a finding")
    check.equal(("%s %s: %s"):format(finding.severity, finding.op, finding.message), expected[i], "finding " .. i)
  end
  check.equal(#found, #expected, "number of findings")
end

finds(flow.new("empty"), nil, {})
finds(flow.new("f"):data { a = 1 }:add(op("AOp", { a = "number", b = "string?" })), nil, {})
finds(flow.new("f"):add(op("AOp", nil, { x = "nil" })):add(op("BOp", { x = "nil" })):add(op("COp", { x = "string?" })), nil, {})

-- Keys that nothing before provides, or not on every path.
local UseOp = op("UseOp", { token = "string" })
finds(flow.new("f"):add(UseOp):add(op("TokenOp", nil, { token = "string" })), nil, {
  "error UseOp: [UseOp] needs <token> (string), but nothing before provides it",
})
finds(flow.new("f"):data { plan = "a" }
  :case("plan", "a"):add(op("TokenOp", nil, { token = "string" }))
  :otherwise():add(op("FreeOp"))
  :combine():add(UseOp), nil, {
  "error UseOp: [UseOp] needs <token> (string), but it may be missing: only [TokenOp] gives it, and not on every path",
})
finds(flow.new("f"):add(op("TokenOp", nil, { token = "string?" })):add(UseOp), nil, {
  "error UseOp: [UseOp] needs <token> (string), but it may be missing: only [TokenOp] gives it, and not on every path",
})

-- The flow's own needs count as given, unless data is.
local function needy() return flow.new("f"):needs { token = "string", nick = "string?" } end
finds(needy():add(UseOp), nil, {})
finds(needy():add(UseOp), { token = "t" }, {})
finds(needy():add(UseOp), {}, {
  "error f: flow 'f' needs <token> (string), but neither the data given nor its own has it",
})
finds(needy():add(UseOp), { token = 5 }, {
  "error f: flow 'f' needs <token> as string, but the data given holds it as integer",
  "error UseOp: [UseOp] needs <token> as string, but the data given holds it as integer",
})
finds(needy():add(op("NickOp", { nick = "string", token = "integer" })), nil, {
  "error NickOp: [NickOp] needs <nick> (string), but it may be missing: flow 'f' declares it as optional",
  "error NickOp: [NickOp] needs <token> as integer, but flow 'f' needs it as string",
})

-- Types that clash; the names of metatables too.
local account = setmetatable({}, { __name = "Account" })
finds(flow.new("f"):data { seats = "five", list = { 1, "two" }, account = account }
  :add(op("AOp", nil, { x = "integer|string" }))
  :add(op("BOp", { seats = "number", x = "boolean", list = "integer[]", account = "Account" }))
  :add(op("COp", { account = "User" })), nil, {
  "error BOp: [BOp] needs <list> as integer[], but the data of flow 'f' holds it as table",
  "error BOp: [BOp] needs <seats> as number, but the data of flow 'f' holds it as string",
  "error BOp: [BOp] needs <x> as boolean, but [AOp] gives it as integer|string",
  "error COp: [COp] needs <account> as User, but the data of flow 'f' holds it as Account",
})

-- An op that is tried again meets the values that it has set.
finds(flow.new("f"):add(op("AgainOp", { x = "string?" }, { x = "integer" }), { retry = 2 }), nil, {
  "error AgainOp: [AgainOp] needs <x> as string?, but is tried again and gives it as integer",
})

-- Functions are never called, neither those of types nor of cases nor of callbacks.
local function never() error "a check has called a function" end
finds(flow.new("f"):data { n = 5 }:add(op("EvenOp", { n = never, m = never }))
  :case(never):add(op("AOp")):will_start(never):did_finish(never), { m = 1 }, {})
finds(flow.new("f"):add(op("EvenOp", { n = never })), nil, {
  "error EvenOp: [EvenOp] needs <n> (predicate), but nothing before provides it",
})

-- After an op that declares no gives, errors are warnings.
finds(flow.new("f"):add(flow.op("ShortOp", never)):add(UseOp), nil, {
  "warning UseOp: [UseOp] needs <token> (string), but nothing before provides it, unless [ShortOp], "
    .. "which declares no gives, sets it",
})
finds(flow.new("f"):data { token = 1 }:add(flow.op("ShortOp", never)):add(UseOp), nil, {
  "warning UseOp: [UseOp] needs <token> as string, but the data of flow 'f' holds it as integer, unless "
    .. "[ShortOp], which declares no gives, sets it",
})

-- Cases that can't match.
finds(flow.new("f"):data { seats = 5, plan = "a" }
  :case("plan", "b"):case("seats", "5"):case("plan", "b"):case("team", "t"), nil, {
  "warning Cases: the case seats = 5 can't match: <seats> is never a string, as the data of flow 'f' holds it "
    .. "as integer",
  "warning Cases: the case plan = b can't match: an earlier case is equal",
  "warning Cases: the case team = t can't match: nothing before provides <team>",
})

-- Names of ops.
finds(flow.new("f"):add(op("greet")):add(flow.new("inner"):add(op("greet")("bound"))), nil, {
  "warning greet: the name [greet] doesn't end in 'Op'",
})

-- Nested flows: their data fills absent keys; after an early end only earlier data is certain.
local inner = flow.new("inner"):needs { token = "string", plan = "string" }:data { plan = "a" }
  :case("plan", "b"):combine():add(op("GiveOp", nil, { late = "string" }))
finds(flow.new("f"):add(inner):add(op("LateOp", { late = "string", plan = "string" })), nil, {
  "error inner: flow 'inner' needs <token> (string), but nothing before provides it",
  "error LateOp: [LateOp] needs <late> (string), but it may be missing: only [GiveOp] gives it, and not on "
    .. "every path",
})

-- Groups.
local UploadOp = flow.op("UploadOp", { needs = { image = "string", token = "string" }, gives = { url = "string" },
  primary_input = "image", run = never })
local group = { input = "images", output = "urls", failures = "failed", allow_failure = true }
finds(flow.new("f"):data { token = "t" }:add_grouped(UploadOp, group), nil, {
  "error UploadOp: the group of [UploadOp] needs <images> (any[]), but nothing before provides it",
})
finds(flow.new("f"):data { token = "t", images = "one" }:add_grouped(UploadOp, group), nil, {
  "error UploadOp: the group of [UploadOp] needs <images> as any[], but the data of flow 'f' holds it as string",
})
finds(flow.new("f"):data { token = "t", images = {} }:add_grouped(UploadOp, group), nil, {
  "error UploadOp: the group of [UploadOp] needs an item in <images>, but the data of flow 'f' holds an empty list",
})
finds(flow.new("f"):add_grouped(UploadOp, group)
  :add(op("UrlOp", { url = "string", urls = "integer[]", failed = "table" })), { images = { "a", 2 } }, {
  "error UploadOp: [UploadOp] needs <image> as string, but item 2 of <images> is integer, which the data given holds",
  "error UploadOp: [UploadOp] needs <token> (string), but nothing before provides it",
  "error UrlOp: [UrlOp] needs <url> (string), but nothing before provides it",
  "error UrlOp: [UrlOp] needs <urls> as integer[], but the group of [UploadOp] gives it as string[]",
})
finds(flow.new("f"):data { token = "t" }:add(op("ListOp", nil, { images = "integer[]" }))
  :add_grouped(UploadOp, group), nil, {
  "error UploadOp: [UploadOp] needs <image> as string, but [ListOp] gives <images> with items of type integer",
})

-- Parallel steps.
finds(flow.new("f"):add_parallel(op("AOp", nil, { x = "integer" }), op("BOp", { x = "integer" }, { x = "integer" }))
  :add(op("COp", { x = "integer" })), nil, {
  "error BOp: [BOp] needs <x> (integer), but it may be missing: [AOp] gives it at the same time",
  "warning BOp: [BOp] gives <x> at the same time as [AOp]; the later one wins",
})
finds(flow.new("f"):data { x = "s" }
  :add_parallel(op("AOp", nil, { x = "integer" }), op("BOp", { x = "string" })), nil, {
  "error BOp: [BOp] needs <x> as string, but [AOp] gives it as integer at the same time",
})

-- Final steps.
finds(flow.new("f"):data { a = 1 }:add(op("OpenOp", nil, { handle = "integer" }))
  :add_finally(op("CloseOp", { handle = "integer?", a = "integer" }))
  :add_finally(op("StrictOp", { handle = "integer" })), nil, {
  "error StrictOp: [StrictOp] needs <handle> (integer), but it may be missing: only [OpenOp] gives it, and not on "
    .. "every path",
})

-- Misuse.
local blueprint = flow.new("f")
check.usage(function() blueprint:check(5) end, "check", "#1", "table expected, got number")
check.usage(function() blueprint:check { 1 } end, "check", "#1", "keys of data are strings")
check.usage(function() blueprint.check() end, "check", "flow expected, got no value")
check.usage(function() blueprint.check(UseOp) end, "check", "flow expected, got op")
