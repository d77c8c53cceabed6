-- Every text that RFC 8259 allows is read, and its value is written so that it reads back the same.
local json = require "flow.json"
local check = require "check"

local function text(value)
  if value == json.null then return "null" end
  if math.type(value) == "float" then return ("float %.17g"):format(value) end
  if type(value) ~= "table" then return ("%s %s"):format(math.type(value) or type(value), value) end
  local parts = {}
  for key, item in pairs(value) do parts[#parts + 1] = ("%s=%s"):format(key, text(item)) end
  table.sort(parts)
  return "{" .. table.concat(parts, ", ") .. "}"
end

for _, case in ipairs {
  -- Arrays.
  { "[]", "{}" }, { "[ ]", "{}" }, { "[[]   ]", "{1={}}" }, { "[\"\"]", "{1=string }" },
  { "[null, 1, \"1\", {}]", "{1=null, 2=integer 1, 3=string 1, 4={}}" },
  { "[1\n]", "{1=integer 1}" }, { " [1]", "{1=integer 1}" }, { "[2] ", "{1=integer 2}" },
  { "[1,null,null,null,2]", "{1=integer 1, 2=null, 3=null, 4=null, 5=integer 2}" },
  -- Objects.
  { "{}", "{}" }, { "{\"\":0}", "{=integer 0}" }, { "{\"a\":[]}", "{a={}}" },
  { "{\"a\":1,\"a\":2}", "{a=integer 2}" }, { "{\"a\":1,\"a\":null}", "{}" },
  { "{\"a\\u0000b\":1}", "{a\0b=integer 1}" }, { "{\"a\" :\t1 ,\r\n\"b\": 2}", "{a=integer 1, b=integer 2}" },
  -- Scalars alone.
  { "true", "boolean true" }, { "false", "boolean false" }, { "null", "null" }, { "42", "integer 42" },
  { "-0.1", "float -0.10000000000000001" }, { "\"\"", "string " }, { "  1\n", "integer 1" },
  -- Numbers.
  { "-0", "float -0" }, { "0", "integer 0" }, { "-1", "integer -1" }, { "0e1", "float 0" },
  { "0e+1", "float 0" }, { "1E22", "float 1e+22" }, { "1E-2", "float 0.01" }, { "1.0", "float 1" },
  { "123.456e78", "float 1.23456e+80" }, { "1e+2", "float 100" }, { "0.1e1", "float 1" },
  { "-9223372036854775808", "integer -9223372036854775808" },
  { "9223372036854775807", "integer 9223372036854775807" },
  { "9223372036854775808", "float 9.2233720368547758e+18" },
  { "-9223372036854775809", "float -9.2233720368547758e+18" },
  { "18446744073709551616", "float 1.8446744073709552e+19" },
  { "100000000000000000000", "float 1e+20" }, { "1e-400", "float 0" }, { "-1e-400", "float -0" },
  { "0e999999999999", "float 0" }, { "0.00000000000000000000000000000001e32", "float 1" },
  -- Strings.
  { [["\u0041\u00e9\u20ac\ud83d\ude00"]], "string Aé€😀" }, { [["\"\\\/\b\f\n\r\t"]], "string \"\\/\b\f\n\r\t" },
  { "\"\u{7f}\"", "string \u{7f}" }, { "\"é€😀\u{2028}\u{10FFFF}\u{FFFF}\"", "string é€😀\u{2028}\u{10FFFF}\u{FFFF}" },
  { [["\u0000"]], "string \0" }, { [["\uDBFF\uDFFF"]], "string \u{10FFFF}" }, { [["a\\u0041"]], "string a\\u0041" },
  { "\"/*a*/\"", "string /*a*/" },
} do
  local value = json.decode(case[1])
  check.equal(text(value), case[2], case[1])
  check.equal(text(json.decode(json.encode(value))), case[2], case[1])
end

-- At each length, as texts are looked at eight bytes at a time.
for length = 0, 40 do
  for _, special in ipairs { "", "é", "\\n", "\\u20ac", "\\\"" } do
    local plain = ("x"):rep(length)
    local value = json.decode("[\"" .. plain .. special .. plain .. "\"]")[1]
    local expected = ({ ["\\n"] = "\n", ["\\u20ac"] = "€", ["\\\""] = "\"" })[special] or special
    check.equal(value, plain .. expected .. plain)
    check.equal(json.decode(json.encode(value)), value)
  end
end

-- Arrays and objects of each size around those at which they go into their table.
for count = 0, 300 do
  local list, object = {}, {}
  for i = 1, count do
    list[i] = i
    object["k" .. i] = i
  end
  check.same(json.decode(json.encode(list)), list)
  check.same(json.decode(json.encode(object)), object)
end
