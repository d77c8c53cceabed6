-- Wrong arguments and options are errors of use at the line of the call.
local csv = require "flow.csv"
local check = require "check"

check.usage(function() csv.rows() end, "rows", "#1", "string or { path = string } expected, got no value")
check.usage(function() csv.rows { paths = "x" } end, "rows", "#1", "unknown field 'paths'")
check.usage(function() csv.rows("", { headers = true }) end, "rows", "#2", "unknown field 'headers' (did you mean 'header'?)")
check.usage(function() csv.rows("", { header = 1 }) end, "rows", "#2", "field 'header': boolean or list of names expected")
check.usage(function() csv.rows("", { header = {} }) end, "rows", "#2", "field 'header': a list of names expected")
check.usage(function() csv.rows("", { header = { "a", "a" } }) end, "rows", "#2", "two columns are named 'a'")
for _, separator in ipairs { "", ";;", '"', "\n", "\r", "é" } do
  check.usage(function() csv.rows("", { separator = separator }) end, "rows", "#2", "a string of one byte")
end
check.usage(function() csv.rows("", { types = { n = "int" } }) end, "rows", "#2", "unknown type 'int'")
check.usage(function() csv.rows("", { types = { n = 1 } }) end, "rows", "#2", "field 'types': table of strings")
check.usage(function() csv.rows("", { header = { "name" }, types = { nam = "integer" } }) end, "rows", "#2",
  "there is no column 'nam' (did you mean 'name'?)")
check.usage(function() csv.rows("", { header = false, types = { n = "integer" } }) end, "rows", "#2", "columns are numbers")
check.usage(function() csv.rows("", { header = false, types = { [0] = "integer" } }) end, "rows", "#2", "columns are numbers")
check.raises(function() for _ in csv.rows("a\n1", { types = { price = "integer" } }) do end end,
  "there is no column 'price' at line 1")
check.usage(function() csv.encode() end, "encode", "#1", "table expected, got no value")
check.usage(function() csv.encode({}, { columns = {} }) end, "encode", "#2", "field 'columns': list of names expected")
check.usage(function() csv.encode({}, { newline = "\r" }) end, "encode", "#2", "field 'newline'")
