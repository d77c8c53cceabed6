-- Each declared type accepts its values and refuses others.
local flow, check = require "flow", require "check"
local Point = setmetatable({}, { __name = "Point" })
local co = coroutine.create(print)
local values = {
  boolean = false, string = "x", integer = 1, float = 1.0, empty = {}, strings = { "a", "b" },
  mixed = { 1, "a" }, integers = { 1, 2 }, floats = { 1.5 }, map = { k = 1 }, hole = { 1, nil, 3 },
  nested = { { 1 }, {} }, point = Point, points = { Point }, fn = print,
  file = io.stdout, thread = co,
}
local takes = {
  any = "boolean string integer float empty strings mixed integers floats map hole nested point points fn file thread",
  boolean = "boolean", string = "string", number = "integer float", integer = "integer",
  float = "float", ["function"] = "fn", userdata = "file", thread = "thread",
  table = "empty strings mixed integers floats map hole nested point points",
  Point = "point", ["FILE*"] = "file",
  ["string[]"] = "empty strings", ["integer[]"] = "empty integers", ["number[]"] = "empty integers floats",
  ["float[]"] = "empty floats", ["any[]"] = "empty strings mixed integers floats nested points",
  ["Point[]"] = "empty points", ["integer[][]"] = "empty nested points", ["table[]"] = "empty nested points",
  ["string|integer"] = "string integer", ["integer|string[]"] = "integer empty strings",
  ["string?"] = "string", ["integer|string?"] = "integer string", ["integer[]?"] = "empty integers",
}
for declared, names in pairs(takes) do
  for name, value in pairs(values) do
    local wanted = (" " .. names .. " "):find(" " .. name .. " ", 1, true) ~= nil
    -- An empty table with a metatable is an empty list too.
    if name ~= "point" or not declared:find("[]", 1, true) then
      local run = flow.new("types")
        :add(flow.op("TypedOp", { needs = { key = declared }, run = function() end })):run { key = value }
      check.equal(run.ok, wanted, ("%s as %s"):format(name, declared))
      if not wanted then check.equal(run.error.kind, "mismatched_input") end
      run = flow.new("types")
        :add(flow.op("GetOp", function(ctx) assert(rawequal(ctx:get("key", declared), value)) end)):run { key = value }
      check.equal(run.ok, wanted, ("%s as %s in get"):format(name, declared))
    end
  end
  local run = flow.op("TypedOp", { needs = { key = declared }, run = function() end }):run()
  local optional = declared:sub(-1) == "?"
  check.equal(run.ok, optional, "absent as " .. declared)
  if not optional then check.equal(run.error.kind, "insufficient_input") end
end
