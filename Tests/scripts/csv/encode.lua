-- Rows are written so that they read back: quotes where a field needs them, names first.
local flow = require "flow"
local check = require "check"

local csv = flow.csv
check.equal(csv.encode { { 1, 2.5, true }, { "a", "", false } }, "1,2.5,true\na,,false\n")
check.equal(csv.encode { { b = 1, a = "x" }, { a = "y", c = 2 } }, "a,b,c\nx,1,\ny,,2\n")
check.equal(csv.encode({ { b = 1, a = "x" } }, { columns = { "b", "z" } }), "b,z\n1,\n")
check.equal(csv.encode({ { b = 1 } }, { header = false }), "1\n")
check.equal(csv.encode({ { 1, 2 }, { 3 } }, { columns = { "x", "y", "z" } }), "x,y,z\n1,2,\n3,,\n")
check.equal(csv.encode({ { "a,b", 'c"d', "e\nf", "g\rh", "i;j" } }), '"a,b","c""d","e\nf","g\rh",i;j\n')
check.equal(csv.encode({ { "a;b", "c,d" } }, { separator = ";" }), '"a;b";c,d\n')
check.equal(csv.encode({ { 1 }, { 2 } }, { newline = "\r\n" }), "1\r\n2\r\n")
check.equal(csv.encode { { "" }, { "x" } }, '""\nx\n')
check.equal(csv.encode { { flow.json.null, 1.0 } }, ",1.0\n")
check.equal(csv.encode {}, "")
check.equal(csv.encode({}, { columns = { "a", "b" } }), "a,b\n")

-- Any bytes come back.
local seed = 7
local function random(limit)
  seed = (seed * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (seed >> 20) % limit
end
local parts = { '"', ",", "\n", "\r\n", "\r", "a", "", "é", "\0", " ", '""', ";" }
for _ = 1, 300 do
  local rows, width = {}, 1 + random(5)
  for i = 1, 1 + random(6) do
    rows[i] = {}
    for j = 1, width do
      local field = {}
      for k = 1, random(5) do field[k] = parts[1 + random(#parts)] end
      rows[i][j] = table.concat(field)
    end
  end
  local back = {}
  for row in csv.rows(csv.encode(rows), { header = false }) do back[#back + 1] = row end
  check.same(back, rows)
end

for _, case in ipairs {
  { { { 1 }, { {} } }, "can't encode a value of type table in row 2, column 1" },
  { { { a = print } }, "a value of type function in row 1, column 1" },
  { { { 0 / 0 } }, "a number that isn't finite in row 1, column 1" }, { { 1 }, "a row that isn't a table in row 1" },
  { { { 1 }, { 1, a = 1, n = 1 } }, "a row that is both a list and a record in row 2" },
  { { { 1 }, { a = 1 } }, "a record after lists in row 2" }, { { { a = 1 }, { 1 } }, "a list after records in row 2" },
  { { { [0] = 1 } }, "a key that isn't a string in row 1" }, { { { flow.secret "x" } }, "a value of type secret" },
} do check.usage(function() csv.encode(case[1]) end, "encode", "#1", case[2]) end
check.usage(function() csv.encode({ { 1, 2 } }, { columns = { "a" } }) end, "encode", "more values than columns")

-- Nils within a list are empty fields, wherever they are; an empty table fits both kinds of rows.
check.equal(csv.encode { { 1, nil, 3, nil, nil, nil, nil, nil } }, "1,,3\n")
check.equal(csv.encode { { nil, nil, 5, nil, nil, nil, nil, nil } }, ",,5\n")
check.equal(csv.encode { { 1, 2 }, {} }, "1,2\n,\n")
check.equal(csv.encode { {}, { 1 } }, '""\n1\n')

-- Rows that aren't a list are refused rather than left out.
for _, rows in ipairs { { { 1 }, nil, { 3 } }, { name = "Ada" }, { { 1 }, n = 1 } } do
  check.contains(select(2, pcall(csv.encode, rows)).message, "rows that aren't a list")
end
check.contains(select(2, pcall(csv.encode, { { [2 ^ 40 | 0] = 1 } })).message, "so many values")
