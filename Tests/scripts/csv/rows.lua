-- Rows are tables by the names of the first row, or lists; fields in quotes have any bytes.
local flow = require "flow"
local check = require "check"

local csv = flow.csv
check.equal(require "flow.csv", csv)

local function all(source, options)
  local list = {}
  for row in csv.rows(source, options) do list[#list + 1] = row end
  return list
end
local function lists(text, options)
  options = options or {}
  options.header = false
  return all(text, options)
end

check.same(all "name,n\nAda,1\nBob,2\n", { { name = "Ada", n = "1" }, { name = "Bob", n = "2" } })
check.same(all("name,n\r\nAda,1\r\nBob,2", { types = { n = "integer" } }),
  { { name = "Ada", n = 1 }, { name = "Bob", n = 2 } })
check.same(all("Ada;1", { header = { "name", "n" }, separator = ";" }), { { name = "Ada", n = "1" } })
check.same(all "", {})
check.same(all "\n\r\n", {})
check.same(all "a,b\n", {})
check.same(all "\u{FEFF}a\n1\n", { { a = "1" } })
check.same(all "a\n\n1\n\r\n\n2", { { a = "1" }, { a = "2" } })
-- A carriage return alone ends a line, too.
check.same(all 'name,n\rAda,36\r\r"Gr\race",85\r', { { name = "Ada", n = "36" }, { name = "Gr\race", n = "85" } })
check.same(all 'a\r\n1\n2\r3\r\r\n4', { { a = "1" }, { a = "2" }, { a = "3" }, { a = "4" } })

for _, case in ipairs {
  { 'a,"b",c', { "a", "b", "c" } }, { '"a,b","c""d"', { "a,b", 'c"d' } }, { '"a\nb\r\nc",d\n', { "a\nb\r\nc", "d" } },
  { ",,", { "", "", "" } }, { '"",""', { "", "" } }, { '""""', { '"' } }, { '"""a"""', { '"a"' } }, { '"a""""b"', { 'a""b' } },
  { " a , b ", { " a ", " b " } }, { "é\xff\0,x", { "é\xff\0", "x" } }, { '"a\rb",c', { "a\rb", "c" } }, { "a\r", { "a" } },
  { '"a"\r\n', { "a" } }, { '"a"\r', { "a" } }, { 'a,""', { "a", "" } },
} do check.same(lists(case[1]), { case[2] }, case[1]) end
check.same(lists("1\t2\n3\t4", { separator = "\t", types = { [2] = "integer" } }), { { "1", 2 }, { "3", 4 } })

-- Types.
local types = { i = "integer", n = "number", b = "boolean", s = "string", o = "integer?", t = "string?" }
check.same(all("i,n,b,s,o,t,u\n-7,1.5,true,x,,,\n+8,-2,FALSE,,9,y,z\n", { types = types }), {
  { i = -7, n = 1.5, b = true, s = "x", u = "" },
  { i = 8, n = -2, b = false, s = "", o = 9, t = "y", u = "z" },
})
check.same(all("n\n1e3\n-0.25\n12345678901234567890\n007\n", { types = { n = "number" } }),
  { { n = 1000.0 }, { n = -0.25 }, { n = 12345678901234567890.0 }, { n = 7 } })
check.same(all("n\n9223372036854775807\n-9223372036854775808\n", { types = { n = "integer" } }),
  { { n = math.maxinteger }, { n = math.mininteger } })
