-- A file is read piece by piece while other code continues, also in workers; rows go across pieces.
local flow = require "flow"
local check = require "check"

local csv = flow.csv
local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write "\u{FEFF}id,text,n\r\n"
local count = 20000
for i = 1, count do
  file:write(i, i % 7 == 0 and ',"a ""b""\r\n,' or ",plain", i % 7 == 0 and ("x"):rep(i % 50) .. '"' or "", ",", i / 2, "\r\n")
end
file:close()

local function sum(options)
  local lines, total = 0, 0
  options.types = { id = "integer", n = "number" }
  for row in csv.rows({ path = path }, options) do
    lines = lines + 1
    check.equal(row.id, lines)
    assert(row.n == lines / 2)
    check.equal(row.text, lines % 7 == 0 and 'a "b"\r\n,' .. ("x"):rep(lines % 50) or "plain")
    total = total + row.n
  end
  return lines, total
end
local lines, total = sum {}
check.equal(lines, count)
check.equal(total, count * (count + 1) / 4)

local SumOp = flow.op("SumOp", {
  needs = { path = "string" }, gives = { total = "number" }, thread = "worker",
  run = function(ctx)
    local sum = 0.0
    for row in flow.csv.rows({ path = ctx:get "path" }, { types = { n = "number" } }) do sum = sum + row.n end
    ctx:set("total", sum)
  end,
})
check.equal(SumOp:run({ path = path }).data.total, total)

-- One field that is longer than many pieces.
file = assert(io.open(path, "w"))
file:write('a,b\n"', ("x\n"):rep(1000000), '",1\n')
file:close()
for row in csv.rows { path = path } do
  check.equal(#row.a, 2000000)
  check.equal(row.b, "1")
end
file = assert(io.open(path, "a"))
file:write '2,"x'
file:close()
local error = check.raises(function() for _ in csv.rows { path = path } do end end, "'" .. path .. "': expected '\"'", "at line 1000003")
check.equal(error.line, 1000003)
os.remove(path)
check.raises(function() for _ in csv.rows { path = path } do end end, "can't read '" .. path .. "'")

-- An iterator whose file can't be read has ended.
local missing = csv.rows { path = "/no/such/file.csv" }
check.contains(select(2, pcall(missing)).message, "No such file")
check.equal(missing(), nil)
