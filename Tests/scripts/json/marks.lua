-- Arrays carry a mark: an empty one remains an array, through workers and data buckets, too.
local flow = require "flow"
local check = require "check"

local json = flow.json
local text = '{"empty":[],"list":[[],{}],"none":{},"null":[null]}'
local value = json.decode(text)
check.equal(json.encode(value), text)
check.equal(getmetatable(value.empty).__name, "json.array")
check.equal(getmetatable(value.empty), getmetatable(value.list))
check.equal(getmetatable(value), nil)

local EchoOp = flow.op("EchoOp", {
  needs = { value = "table" }, gives = { back = "table", text = "string" }, thread = "worker",
  run = function(ctx)
    local back = ctx:get "value"
    back.more = flow.json.array {}
    ctx:set("back", back)
    ctx:set("text", flow.json.encode(ctx:get "value"))
  end,
})
local run = EchoOp:run { value = value }
check.equal(run.ok, true, run.error)
check.equal(json.encode(run.data.back), '{"empty":[],"list":[[],{}],"more":[],"none":{},"null":[null]}')
check.contains(run.data.text, '"empty":[]')
check.equal(json.encode(run.data.value), text)
check.equal(run.data.back.null[1], json.null)
-- A view of a run's data is what it shows.
check.contains(json.encode(run.data), '"value":{"empty":[]')

local list = { 1 }
check.equal(json.array(list), list)
list[1] = nil
check.equal(json.encode(list), "[]")
check.equal(json.object(list), list)
check.equal(json.encode(list, { empty = "array" }), "{}")
check.equal(json.encode { json.array(), json.object() }, "[[],{}]")
check.usage(function() json.encode(json.object { 1, 2 }) end, "encode", "an object with an index as a key")
check.usage(function() json.array(setmetatable({}, {})) end, "array", "#1", "table without a metatable")
check.usage(function() json.object(1) end, "object", "#1", "table expected, got number")
