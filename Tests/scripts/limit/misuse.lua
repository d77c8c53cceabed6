-- flow.limit, limit:use and the option limit say what is wrong with their arguments.
local flow, check = require "flow", require "check"
local function run() end
check.usage(function() flow.limit() end, "limit", "#1", "string")
check.usage(function() flow.limit "" end, "limit", "#1")
check.usage(function() flow.limit "unknown" end, "limit", "#2", "limit 'unknown' isn't defined")
for _, size in ipairs { 0, -1, 1.5, "many", true, print } do
  check.usage(function() flow.limit("bad", size) end, "limit", "#2", "integer of at least 1, or table, expected")
end
check.usage(function() flow.limit("bad", {}) end, "limit", "#2", "max_concurrent", "rate")
check.usage(function() flow.limit("bad", { max = 1 }) end, "limit", "#2", "'max'")
check.usage(function() flow.limit("bad", { max_concurrent = 0 }) end, "limit", "#2", "max_concurrent")
check.usage(function() flow.limit("bad", { rate = {} }) end, "limit", "#2", "rate")
for _, size in ipairs { 0, -1, 0.5 } do
  check.usage(function() flow.limit("bad", size) end, "limit", "#2", "expected, got " .. size)
end
local db = flow.limit("db", 8 / 2)
check.usage(function() flow.limit("db", 5) end, "limit", "#2", "limit 'db' is defined with other numbers: max_concurrent = 4")
local api = flow.limit("api", { max_concurrent = 8, rate = 20 })
check.usage(function() flow.limit("api", { max_concurrent = 8 }) end, "limit", "#2", "rate = 20 per 1s")
check.equal(flow.limit("api", { max_concurrent = 8, rate = { 20, per = 1 } }), api)

check.usage(function() db:use() end, "use", "#1", "function")
check.usage(function() db.use() end, "use", "self", "limit")
check.usage(function() db.use({}, run) end, "use", "self", "limit")
check.raises(function() db.name = "other" end)
for _, limit in ipairs { 4, true, run, { 1 }, { first = db }, flow.op("AnOp", run) } do
  check.usage(function() flow.op("AnOp", { run = run, limit = limit }) end, "op", "limit", "list of these")
  check.usage(function() flow.op("AnOp", run):with { limit = limit } end, "with", "limit")
  check.usage(function() flow.dispatcher { input = "list", limit = limit } end, "dispatcher", "limit")
end
check.usage(function() flow.op("AnOp", { run = run, limit = "dbs" }) end, "op", "limit 'dbs' isn't defined")
check.usage(function() flow.op("AnOp", { run = run, limit = { db, "dbs" } }) end, "op", "limit 'dbs' isn't defined")
