-- A member that is null is left out and an item is json.null, unless null = "keep" keeps both.
local flow = require "flow"
local check = require "check"

local json = flow.json
check.equal(require "flow.json", json)
check.equal(require "flowlua.json", json)
check.equal(type(json.null), "userdata")

local value = json.decode '{"error": null, "list": [1, null], "inner": {"x": null}}'
check.equal(value.error, nil)
check.equal(value.list[2], json.null)
check.equal(#value.list, 2)
check.equal(next(value.inner), nil)
check.equal(json.decode "null", json.null)

local kept = json.decode('{"error": null, "list": [null]}', { null = "keep" })
check.equal(kept.error, json.null)
check.equal(json.encode(kept), '{"error":null,"list":[null]}')
check.equal(json.decode('{"a":null}', { null = "drop" }).a, nil)

check.raises(function() json.decode('{"a":1,\n"b":{"a":1},"a":2}', { strict = true }) end,
  "expected a key that the object doesn't have yet at line 2, column 13")
check.raises(function() json.decode('{"a":null,"a":null}', { strict = true }) end, "a key that the object doesn't")
check.same(json.decode('{"a":null,"b":[{"c":null}],"d":1}', { strict = true }), { b = { {} }, d = 1 })
check.equal(json.decode('{"a":null}', { strict = true, null = "keep" }).a, json.null)

-- In a log it is called by its name.
local SetOp = flow.op("SetOp", function(ctx) ctx:set("value", { 1, json.null, { x = json.null } }) end)
check.contains(SetOp:run({}):summary(), "add for value: {1, null, {x = null}}")
