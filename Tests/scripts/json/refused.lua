-- A text that isn't JSON is refused, with what was expected, and where.
local json = require "flow.json"
local check = require "check"

for _, case in ipairs {
  -- Nothing, or too much.
  { "", "expected a value, got the end of the text at line 1, column 1" },
  { " \n ", "expected a value, got the end of the text at line 2, column 2" },
  { "[1]]", "expected the end of the text at line 1, column 4" }, { "1 2", "expected the end of the text" },
  { "{\"a\":1}#", "expected the end of the text" }, { "[1]\0", "expected the end of the text" },
  { "{}}", "expected the end of the text" }, { "2@", "expected the end of the text" },
  -- Arrays.
  { "[1 2]", "expected ',' or ']' at line 1, column 4" }, { "[1,]", "expected a value at line 1, column 4" },
  { "[,1]", "expected a value" }, { "[1,,2]", "expected a value" }, { "[\"a\",\n4\n,1,", "got the end of the text" },
  { "[", "expected a value, got the end" }, { "[1}", "expected ',' or ']'" }, { "[*]", "expected a value" },
  { "[1:2]", "expected ',' or ']'" }, { "]", "expected a value" }, { "[\"x\"", "expected ',' or ']', got the end" },
  -- Objects.
  { "{\"a\":1 \"b\":2}", "expected ',' or '}' at line 1, column 8" }, { "{\"a\" 1}", "expected ':' at line 1, column 6" },
  { "{a:1}", "expected a key in double quotes" }, { "{1:1}", "expected a key" }, { "{\"a\":1,}", "expected a key" },
  { "{\"a\"}", "expected ':'" }, { "{'a':0}", "expected a key" }, { "{\"a\":}", "expected a value" },
  { "{null:1}", "expected a key" }, { "{,}", "expected a key" }, { "{", "expected a key in double quotes, got the end" },
  { "{\"a\":\"b\"]", "expected ',' or '}'" }, { "{[1]:2}", "expected a key" }, { "{\"a\":1,,\"b\":2}", "expected a key" },
  -- Words.
  { "nul", "expected 'null'" }, { "True", "expected a value" }, { "fals", "expected 'false'" }, { "truE", "expected 'true'" },
  { "NaN", "expected a value" }, { "Infinity", "expected a value" }, { "-Infinity", "expected a digit" },
  { "undefined", "expected a value" },
  -- Numbers.
  { "01", "expected no digit after a leading zero" }, { "-01", "expected no digit" }, { "1.", "expected a digit after the point" },
  { ".5", "expected a value" }, { "+1", "expected a value" }, { "-", "expected a digit" }, { "1e", "a digit of the exponent" },
  { "1e+", "a digit of the exponent" }, { "1.e1", "expected a digit" }, { "0x1", "the end of the text" }, { "- 1", "expected a digit" },
  { "1.5.5", "the end of the text" }, { "--1", "expected a digit" }, { "1e1.5", "the end of the text" }, { "１", "expected a value" },
  { "1e400", "a number that a float can hold at line 1, column 1" }, { "[-1e+9999]", "a number that a float can hold" },
  { ("9"):rep(400), "a number that a float can hold" }, { "1e99999999999999999999", "a float can hold" },
  -- Strings.
  { "\"a", "expected '\"' at the end of a string, got the end of the text at line 1, column 3" }, { "\"", "got the end" },
  { "'a'", "strings are written in double quotes" }, { "\"a\nb\"", "an escape for a control character" },
  { "\"a\0b\"", "an escape for a control character" }, { "\"\t\"", "a control character" }, { "\"\\x\"", "an escape that JSON knows" },
  { "\"\\u12g4\"", "four hexadecimal digits" }, { "\"\\u12\"", "four hexadecimal" }, { "\"\\", "an escape that JSON knows" },
  { "\"\\ud800\"", "a pair of surrogates" }, { "\"\\udc00\"", "a pair of surrogates" }, { "\"\\ud800\\u0041\"", "a pair of surrogates" },
  { "\"\\ud800\\", "a pair" }, { "\"\\ud800\\u", "a pair" }, { "\"\xff\"", "expected UTF-8" }, { "\"\xc0\x80\"", "expected UTF-8" },
  { "\"\xed\xa0\x80\"", "expected UTF-8" }, { "\"\xf4\x90\x80\x80\"", "expected UTF-8" }, { "\"\xe2\x82\"", "expected UTF-8" },
  { "\"\xe2\x82", "expected UTF-8" }, { "\"\xf0\x80\x80\x80\"", "expected UTF-8" }, { "\"\x80\"", "expected UTF-8" },
  -- Forms that other formats allow.
  { "[1] // one", "expected the end of the text" }, { "/* a */ 1", "JSON has no comments" }, { "\u{FEFF}[]", "without a byte-order mark" },
  { "\xff\xfe[\0", "the byte-order mark of UTF-16" }, { "[\f1]", "expected a value" }, { "[\u{a0}1]", "expected a value" },
} do
  local error = check.raises(function() json.decode(case[1]) end, case[2])
  check.equal(error.kind, "error", case[1])
  check.equal(error.code, "json", case[1])
end

local error = check.raises(function() json.decode("{\n  \"é€\": [1,\n    \"é\" 2]}") end, "refused.lua:52: ",
  "expected ',' or ']' at line 3, column 9")
check.equal(error.line, 3)
check.equal(error.column, 9)
check.equal(error.offset, 27)
check.contains(error.traceback, "refused.lua:52")

-- Deep texts are refused, not followed: no stack overflows.
for _, text in ipairs { ("["):rep(100000), ("{\"a\":"):rep(100000), ("[{\"\":"):rep(50000) } do
  check.raises(function() json.decode(text) end, "nested deeper than max_depth allows")
end
