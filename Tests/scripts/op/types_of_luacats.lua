-- Types have the form of LuaCATS: unions with nil, literals, lists of unions, tables with types of keys, values and fields, functions.
local flow, check = require "flow", require "check"

local function run(type, value)
  local op = flow.op("NeedOp", { needs = { v = type }, run = function() end })
  return op:run { v = value }
end
for type, cases in pairs {
  ["string|nil"] = { yes = { "x" }, no = { 1 }, is_optional = true },
  ["nil"] = { yes = {}, no = { 1, {} }, is_optional = true },
  ["nil | integer"] = { yes = { 1 }, no = { "x" }, is_optional = true },
  ["(string|nil)[]"] = { yes = { {}, { "a" } }, no = { { 1 }, "a" } },
  ["(string|integer)[]"] = { yes = { {}, { "a", 1 } }, no = { { 1.5 }, "a", { a = 1 } } },
  ["((string|integer)[])[]"] = { yes = { { { "a" }, {} } }, no = { { "a" } } },
  ["\"a\"|'b'"] = { yes = { "a", "b" }, no = { "c", 1 } },
  ["1|2|-3"] = { yes = { 1, 2, -3 }, no = { 3, "1", 1.5 } },
  ["\"off\"|integer?"] = { yes = { "off", 7 }, no = { "on" }, is_optional = true },
  ["table<string, integer>"] = { yes = { {}, { a = 1, b = 2 } }, no = { { a = "x" }, { 1 }, "x" } },
  ["table<string,string[]>"] = { yes = { { a = {} }, { a = { "x" } } }, no = { { a = { 1 } } } },
  ["{ name: string, age: integer? }"] = { yes = { { name = "x" }, { name = "x", age = 1, more = true } },
    no = { {}, { name = 1 }, { name = "x", age = "1" }, "x" } },
  ["{ a?: { b: boolean }; c: any }[]"] = { yes = { {}, { { c = 1 } }, { { a = { b = true }, c = 1 } } },
    no = { { {} }, { { a = {}, c = 1 } } } },
  ["fun()"] = { yes = { print, function() end }, no = { "x", {} } },
  ["fun(a: string, b?: fun(x: integer): boolean): string, integer"] = { yes = { print }, no = { 1 } },
} do
  for _, value in ipairs(cases.yes) do
    local seen = run(type, value)
    check.equal(seen.error and tostring(seen.error), nil, type)
  end
  for _, value in ipairs(cases.no) do
    local seen = run(type, value)
    check.equal(seen.ok, false, type)
    check.equal(seen.error.kind, "mismatched_input", type)
    check.contains(tostring(seen.error), "but NOT type <" .. type:gsub("^%s+", "") .. ">")
  end
  check.equal(run(type).ok, cases.is_optional == true, type)
end
for _, type in ipairs { "table<string", "table<string>", "(string", "string)", "\"a", "{ a }", "{ a: string", "fun(", "1x",
  "99999999999999999999", "|nil", ("("):rep(100) .. "string" .. (")"):rep(100) } do
  check.usage(function() flow.op("AOp", { needs = { x = type }, run = print }) end, "op", "type of 'x'")
end
-- A list with a hole says which item is missing.
local holed = flow.new("f"):data { items = { 1, nil, 3 } }
  :add_grouped(flow.op("AOp", { needs = { i = "integer" }, run = print }), { input = "items" }):run()
check.contains(tostring(holed.error), "NOT type <any[] (it has no item 2)>")
check.contains(tostring(run("integer[]", { nil, 2 }).error), "NOT type <integer[] (it has no item 1)>")
check.lacks(tostring(run("integer[]", { 1, x = 2 }).error), "no item")
check.lacks(tostring(run("integer[]", { 1, "x" }).error), "no item")
-- A check of a flow knows what they exclude.
local function findings(gives, needs)
  return #flow.new("f"):add(flow.op("GiveOp", { gives = { v = gives }, run = print }))
    :add(flow.op("NeedOp", { needs = { v = needs }, run = print })):check()
end
check.equal(findings("string", "\"a\"|\"b\""), 0)
check.equal(findings("integer", "\"a\"|\"b\""), 1)
check.equal(findings("\"a\"|1", "1"), 0)
check.equal(findings("\"c\"", "\"a\"|\"b\""), 1)
check.equal(findings("table<string,integer>", "table<string,string>"), 1)
check.equal(findings("table", "{ a: integer }"), 0)
check.equal(findings("{ a: string }", "{ a: integer, b: any }"), 1)
