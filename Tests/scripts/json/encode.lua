-- Tables become arrays or objects by their keys; what JSON can't represent is an error that names the way to it.
local json = require "flow.json"
local check = require "check"

for _, case in ipairs {
  { {}, "{}" }, { { 1, 2 }, "[1,2]" }, { { a = 1, b = { 2 } }, '{"a":1,"b":[2]}' }, { "x", '"x"' }, { true, "true" },
  { { [2] = "b", [1] = "a" }, '["a","b"]' }, { { [3] = 3, [2] = 2, [1] = 1 }, "[1,2,3]" }, { json.null, "null" },
  { { json.null, { x = json.null } }, '[null,{"x":null}]' }, { "a\"\\/\b\f\n\r\t\1\x7f", '"a\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f"' },
  { setmetatable({ 1 }, { __index = error, __len = error, __pairs = error }), "[1]" }, { "é€😀", '"é€😀"' },
} do check.equal(json.encode(case[1]), case[2]) end

-- Sorted as bytes.
check.equal(json.encode { b = 1, a = 2, aa = 3, ["é"] = 4, [""] = 5, ["12345678a"] = 6, ["12345678"] = 7, B = 8 },
  '{"":5,"12345678":7,"12345678a":6,"B":8,"a":2,"aa":3,"b":1,"é":4}')
local many, keys = {}, {}
for i = 1, 1000 do
  local key = "key" .. i * 7919 % 1000
  many[key] = i
  keys[i] = key
end
table.sort(keys)
local at = 0
for key in json.encode(many):gmatch '"(key%d+)":%d+' do
  at = at + 1
  check.equal(key, keys[at])
end
check.equal(at, 1000)
check.same(json.decode(json.encode(many, { sort = false })), many)

check.equal(json.encode({ a = { 1, {}, json.array() }, b = { c = "x" } }, { indent = 2 }), [[
{
  "a": [
    1,
    {},
    []
  ],
  "b": {
    "c": "x"
  }
}]])
check.equal(json.encode({}, { empty = "array" }), "[]")
check.equal(json.encode({ json.object(), {} }, { empty = "array" }), "[{},[]]")
check.equal(json.encode("é€😀\n", { ascii = true }), [["\u00e9\u20ac\ud83d\ude00\n"]])
check.equal(json.encode({ ["é"] = 1 }, { ascii = true }), [[{"\u00e9":1}]])
check.equal(json.encode("a\xff\xc3b\xe2\x82", { invalid = "replace" }), '"a\u{FFFD}\u{FFFD}b\u{FFFD}\u{FFFD}"')
check.equal(json.encode("\xff", { invalid = "replace", ascii = true }), [["\ufffd"]])

local cycle = {}
cycle.child = { { parent = cycle } }
local shared = { 1 }
check.equal(json.encode { shared, shared }, "[[1],[1]]")
for _, case in ipairs {
  { { items = { 1, 2, { price = print } } }, "can't encode a value of type function at items[3].price" },
  { { ["a b"] = { coroutine.create(print) } }, 'can\'t encode a value of type thread at ["a b"][1]' },
  { io.stdout, "can't encode a value of type FILE*" }, { cycle, "can't encode a table that contains itself at child[1].parent" },
  { { 1, nil, 3 }, "can't encode an array with holes" }, { { x = { [2] = 1 } }, "can't encode an array with holes at x" },
  { { 1, a = 2 }, "a table with both indices and string keys" }, { { [1.5] = 1 }, "a key that is neither a string nor an index" },
  { { [true] = 1 }, "a key that is neither" }, { { a = 1, [true] = 1 }, "a key that is neither" }, { { [0] = 1 }, "a key that is neither" },
  { { [-1] = 1, 1 }, "a key that is neither" }, { { x = "\xff" }, "can't encode a string that isn't UTF-8 at x; invalid = \"replace\"" },
  { { { ["\xff"] = 1 } }, "can't encode a key that isn't UTF-8 at [1]" }, { { string.pack("j", 1) }, "at [1]", ok = true },
} do
  if not case.ok then check.usage(function() json.encode(case[1]) end, "encode", "#1", case[2]) end
  if not case.ok then check.usage(function() json.encode(case[1], { sort = false }) end, "encode", case[2]) end
end
local list = json.array { 1 }
list.name = "x"
check.usage(function() json.encode(list) end, "encode", "an array with a key that isn't an index")
local deep = {}
for _ = 1, 2000 do deep = { deep } end
check.usage(function() json.encode(deep) end, "encode", "more levels than max_depth allows")
check.equal(json.encode(deep, { max_depth = 3000 }), ("["):rep(2000) .. "{}" .. ("]"):rep(2000))

-- The keys of a list in any order, nested: each value is written once.
local ordered, shuffled = {}, {}
for _ = 1, 200 do
  ordered = { ordered, 0, 0 }
  local list = { shuffled, a = 1, b = 2, c = 3, d = 4 }
  list.a, list.b, list.c, list.d = nil, nil, nil, nil
  list[3] = 0
  list[2] = 0
  shuffled = list
end
check.equal(json.encode(shuffled), json.encode(ordered))

-- A cycle is named by the shortest way, wherever it begins and however long it is, and at the limit of the depth, too.
for before = 0, 9 do
  for length = 1, 9 do
    local chain = {}
    for i = 1, before + length do chain[i] = { 1 } end
    for i = 1, #chain do chain[i].x, chain[i][1] = chain[i + 1] or chain[before + 1], nil end
    local way = (".x"):rep(#chain):sub(2)
    local expected = "can't encode a table that contains itself at " .. way .. ")"
    check.usage(function() json.encode(chain[1]) end, "encode", expected)
    check.usage(function() json.encode(chain[1], { max_depth = #chain }) end, "encode", expected)
    check.usage(function() json.encode { chain[1] } end, "encode", "itself at [1]." .. way .. ")")
  end
end
-- One that is found late isn't written again and again.
local wide = {}
for i = 1, 20000 do wide[i] = "some text of a list that contains itself" end
wide[#wide + 1] = wide
check.usage(function() json.encode(wide) end, "encode", "a table that contains itself at [20001]")
