-- Broken quotes, wrong numbers of fields and fields of another type are errors with their line.
local csv = require "flow.csv"
local check = require "check"

local function read(text, options)
  return function() for _ in csv.rows(text, options) do end end
end
for _, case in ipairs {
  { 'a,b\n1,2\n3\n', "expected 2 fields, got 1 at line 3", 3 }, { "a,b\n1,2,3,4", "expected 2 fields, got at least 3 at line 2", 2 },
  { 'a\n"x\ny', "expected '\"' at the end of a field, got the end of the text at line 3, column 2", 3 },
  { 'a\nx"y', "expected no quote in a field without quotes at line 2, column 2", 2 },
  { 'a,b\né,"y"z', "expected a separator or the end of the line after a field in quotes at line 2, column 6", 2 },
  { 'a,a\n1,2', "two columns are named 'a' at line 1", 1 }, { 'a\n\n"1\n2"\n"', "the end of a field", 5 },
  { 'a,b\n"x\ny",2\n1', "expected 2 fields, got 1 at line 4", 4 },
} do
  local error = check.raises(read(case[1]), "errors.lua:6: ", case[2])
  check.equal(error.kind, "error")
  check.equal(error.code, "csv")
  check.equal(error.line, case[3], case[1])
end
check.raises(read("1,2\n3", { header = false }), "expected 2 fields, got 1 at line 2")
local function typed(field, type, what)
  check.raises(read("a,n\nx," .. field, { types = { n = type } }), what .. " at line 2, column 3")
end
for _, field in ipairs { "x", "1.0", "", " 1", "1 ", "0x10", "9223372036854775808", "-", "1e3", "--1", "+-1", "١" } do
  typed(field, "integer", "expected an integer")
end
for _, field in ipairs { "x", "", "nan", "inf", "1.", ".5", "1e", "0x1p3", "1 000", "1e999", "1..2" } do
  typed(field, "number", "expected a number")
end
for _, field in ipairs { "", "yes", "1", "truex" } do typed(field, "boolean", "expected true or false") end

-- After an error the next row follows, whatever the row was.
local bad = {
  { "x,y", "expected an integer" }, { 'x,"y\n9,9"', "expected an integer" }, { "1", "expected 2 fields, got 1" },
  { '1,2,"\r\n",4', "expected 2 fields" }, { 'x,"y\n"z', "expected an integer" }, { '1,a"b,"', "expected no quote" },
  { '"1" ,"2', "expected a separator" },
}
local folder = require "flow.fs".temp_dir()
for _, line_end in ipairs { "\n", "\r\n", "\r" } do
  local text, line = "a,b" .. line_end, 2
  local wanted = {}
  for i, case in ipairs(bad) do
    text = ("%s%s%s%d,good%s"):format(text, case[1], line_end, i, line_end)
    wanted[i] = line
    line = line + 2 + select(2, case[1]:gsub("\r?\n", ""))
  end
  local path = folder .. "/rows.csv"
  require "flow.fs".write(path, text)
  for _, source in ipairs { text, { path = path } } do
    local rows = csv.rows(source, { types = { a = "integer" } })
    for i, case in ipairs(bad) do
      local e = check.raises(rows, case[2])
      check.equal(e.line, wanted[i], case[1])
      check.same(rows(), { a = i, b = "good" }, case[1])
    end
    check.equal(rows(), nil)
    check.equal(rows(), nil)
  end
end
-- A loop with `on_error` leaves them out; the function gets the error with the text of the row.
do
  local text, wanted = "a,b\n", {}
  for i, case in ipairs(bad) do
    text = ("%s%s\n%d,good\n"):format(text, case[1], i)
    wanted[#wanted + 1], wanted[#wanted + 2] = case[1], i
  end
  local path = folder .. "/left_out.csv"
  require "flow.fs".write(path, text .. "1")
  wanted[#wanted + 1] = "1"
  for _, source in ipairs { text .. "1", { path = path } } do
    local seen, lines = {}, 0
    local function on_error(problem)
      seen[#seen + 1] = problem.text
      check.equal(problem.kind, "error")
      check.equal(problem.code, "csv")
      assert(problem.line > lines)
      lines = problem.line
    end
    for row in csv.rows(source, { types = { a = "integer" }, on_error = on_error }) do
      check.equal(row.b, "good")
      seen[#seen + 1] = row.a
    end
    check.same(seen, wanted)
  end
  -- Its own error ends the loop, and so does a header that can't be used.
  local rows = csv.rows("a,b\n1\n2,3\n", { on_error = function(problem) error("no: " .. problem.text) end })
  check.raises(rows, "no: 1")
  check.same(rows(), { a = "2", b = "3" })
  check.raises(csv.rows("a,a\n1,2\n", { on_error = error }), "two columns are named 'a'")
  check.raises(csv.rows("a\n12\n", { max_bytes = 1, on_error = error }), "max_bytes")
  check.usage(function() csv.rows("", { on_error = 1 }) end, "rows", "#2", "field 'on_error': function expected")
end

-- But nothing follows a header that can't be used, and a field without an end.
for _, text in ipairs { "a,a\n1,2\n", 'a\n"x\n1\n' } do
  local rows = csv.rows(text)
  check.equal(pcall(rows), false)
  check.equal(rows(), nil)
end

-- A row has a limit, in a text and in a file; a file may have no end of a line, or of a field in quotes.
local flow = require "flow"
local path = flow.fs.temp_dir() .. "/rows.csv"
local text = "a,b\n1,2345\n\n1,23456\n"
flow.fs.write(path, text)
for _, source in ipairs { text, { path = path } } do
  local count = 0
  local problem = check.raises(function()
    for _ in csv.rows(source, { max_bytes = 6 }) do count = count + 1 end
  end, "more than 6 bytes (max_bytes) at line 4")
  check.equal(count, 1)
  check.equal(problem.code, "csv")
  check.equal(problem.line, 4)
end
check.raises(function() for _ in csv.rows({ path = "/dev/zero" }, { max_bytes = 1 << 20 }) do end end,
  "'/dev/zero': more than 1048576 bytes (max_bytes) at line 1")
flow.fs.write(path, 'a\n"' .. ("x\n"):rep(1 << 20))
check.raises(function() for _ in csv.rows({ path = path }, { max_bytes = 1 << 20 }) do end end,
  "more than 1048576 bytes (max_bytes) at line 2")

-- With `on_error` the function gets the beginning of such a row, and the rest of it is left out; its fields may have line ends
-- and quotes.
local X = ("x"):rep(700000)
local LONG = {
  { "12,3456", 0 }, { X .. "," .. X, 0 }, { '"' .. X .. '\n""\n,' .. X .. '"",","\n"', 3 }, { '"a\r\n' .. X .. '\rb",c', 2 },
  { 'a"b,"' .. X, 0 }, { '"a"b,"' .. X, 0 }, { X .. ',"1\n2"', 1 },
}
for _, line_end in ipairs { "\n", "\r\n", "\r" } do
  local text, line, wanted = "a,b" .. line_end, 2, {}
  for i, case in ipairs(LONG) do
    text = ("%s%s%s%s%d,b%s"):format(text, case[1], line_end, line_end, i, line_end)
    wanted[#wanted + 1], wanted[#wanted + 2] = line .. ":" .. case[1]:sub(1, 1000), tostring(i)
    line = line + 3 + case[2]
  end
  for _, rest in ipairs { "", X, '"' .. X, X .. line_end, X .. ',"' .. line_end } do
    local whole, wanted = text .. rest, { table.unpack(wanted) }
    if rest ~= "" then wanted[#wanted + 1] = line .. ":" .. rest:gsub("[\r\n]+$", ""):sub(1, 1000) end
    flow.fs.write(path, whole)
    local seen = {}
    for row in csv.rows({ path = path }, { max_bytes = 6, on_error = function(problem)
      check.contains(problem.message, "more than 6 bytes (max_bytes) at line " .. problem.line)
      check.equal(problem.code, "csv")
      seen[#seen + 1] = problem.line .. ":" .. problem.text
    end }) do
      check.equal(row.b, "b")
      seen[#seen + 1] = row.a
    end
    check.same(seen, wanted)
  end
end
local seen = {}
for row in csv.rows("1,23456\n1,2\n1,23456", { header = false, max_bytes = 6, on_error = function(problem)
  seen[#seen + 1] = problem.line .. ":" .. problem.text
end }) do seen[#seen + 1] = #row end
check.same(seen, { "1:1,23456", 2, "3:1,23456" })
-- Nothing of it is held in memory.
flow.fs.write(path, "a\n" .. ("x"):rep(40 << 20) .. "\n2\n")
local result = require "host".script([[
  local flow = require "flow"
  local count = 0
  local function on_error() count = count + 1 end
  for row in flow.csv.rows({ path = arg[1] }, { max_bytes = 100, on_error = on_error }) do print(row.a) end
  for value in flow.json.lines({ path = arg[1] }, { max_bytes = 100, on_error = on_error }) do print(value) end
  print(count)]], { path }, { before = { "--memory-limit", "16M" } })
check.equal(result.stdout, "2\n2\n3\n", result.stderr)
check.usage(function() csv.rows("", { max_bytes = "1" }) end, "rows", "#2", "field 'max_bytes': integer of at least 1 expected")
