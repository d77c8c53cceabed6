-- The lines of a text or file are values one after another; a wrong one is an error with its line.
local flow = require "flow"
local check = require "check"

local json = flow.json
local function all(source, options)
  local list = {}
  for value in json.lines(source, options) do list[#list + 1] = value end
  return list
end
check.same(all '1\n{"a":2}\n\n \t\r\n[3]\r\nnull\n"x"', { 1, { a = 2 }, { 3 }, json.null, "x" })
check.same(all "", {})
check.same(all "\n\n", {})
check.same(all('{"a":null}', { null = "keep" }), { { a = json.null } })

local got = {}
local error = check.raises(function()
  for value in json.lines '1\n2\n  [3,}\n4' do got[#got + 1] = value end
end, "expected a value at line 3, column 6")
check.same(got, { 1, 2 })
check.equal(error.line, 3)
check.equal(error.column, 6)
check.equal(error.offset, 10)

-- After an error the next line follows.
local lines = json.lines "x\n2"
check.equal(pcall(lines), false)
check.equal(lines(), 2)
check.equal(lines(), nil)
check.equal(lines(), nil)

-- A file of several pieces, with lines across their borders.
local path = os.tmpname()
local file = assert(io.open(path, "w"))
local count = 30000
for i = 1, count do file:write('{"number":', i, ',"text":"', ("x"):rep(i % 40), '"}\n') end
file:close()
local sum, seen = 0, 0
for value in json.lines { path = path } do
  seen = seen + 1
  sum = sum + value.number
  check.equal(#value.text, value.number % 40)
end
check.equal(seen, count)
check.equal(sum, count * (count + 1) // 2)

-- The file is closed by a break; a worker reads one, too.
for value in json.lines { path = path } do
  if value.number == 10 then break end
end
local CountOp = flow.op("CountOp", {
  needs = { path = "string" }, gives = { count = "integer" }, thread = "worker",
  run = function(ctx)
    local lines = 0
    for _ in flow.json.lines { path = ctx:get "path" } do lines = lines + 1 end
    ctx:set("count", lines)
  end,
})
check.equal(CountOp:run({ path = path }).data.count, count)

-- A line has a limit, in a text and in a file, after which nothing follows; a file may have none at all.
local function limited(source)
  local iterator, numbers = json.lines(source, { max_bytes = 8 }), {}
  local problem = check.raises(function() for value in iterator do numbers[#numbers + 1] = value end end,
    "more than 8 bytes (max_bytes) at line 3")
  check.same(numbers, { 1, 12345678 })
  check.equal(problem.code, "json")
  check.equal(problem.line, 3)
  check.equal(iterator(), nil)
end
local text = "1\n12345678\n123456789\n4\n"
flow.fs.write(path, text)
limited(text)
limited { path = path }
check.raises(function() for _ in json.lines({ path = "/dev/zero" }, { max_bytes = 1 << 20 }) do end end,
  "'/dev/zero': more than 1048576 bytes (max_bytes) at line 1")
-- With `on_error` the function gets its beginning, and the rest is left out.
local long = ("x"):rep(3 << 20)
local texts = { text .. "5678901234", text .. long, long .. "\n" .. text, text .. "\r\n" .. long .. "\n\n" .. long .. "\n6" }
for _, each in ipairs(texts) do
  flow.fs.write(path, each)
  local wanted, number = {}, 0
  for line in each:gmatch "([^\n]*)\n?" do
    number = number + 1
    if #line > 8 then
      wanted[#wanted + 1] = ("%d:%s"):format(number, line:sub(1, 1000))
    elseif line:find "%d" then
      wanted[#wanted + 1] = tonumber(line)
    end
  end
  for _, source in ipairs { each, { path = path } } do
    local seen = {}
    for value in json.lines(source, { max_bytes = 8, on_error = function(problem)
      check.contains(problem.message, ("more than 8 bytes (max_bytes) at line %d"):format(problem.line))
      check.equal(problem.code, "json")
      seen[#seen + 1] = problem.line .. ":" .. problem.text
    end }) do seen[#seen + 1] = value end
    check.same(seen, wanted)
  end
end
check.usage(function() json.lines("", { max_bytes = 0 }) end, "lines", "#2", "field 'max_bytes': integer of at least 1 expected")
check.usage(function() json.decode("", { max_bytes = 1 }) end, "decode", "#2", "unknown field 'max_bytes'")
os.remove(path)
check.raises(function() all { path = path } end, "can't read '" .. path .. "'")

-- A loop with `on_error` leaves out lines with errors; the function gets each error with the text of its line.
local seen = {}
for value in json.lines('1\n{"a":}\n\n[2\n3', { on_error = function(problem)
  check.equal(problem.code, "json")
  seen[#seen + 1] = problem.line .. ":" .. problem.text
end }) do seen[#seen + 1] = value end
check.same(seen, { 1, '2:{"a":}', "4:[2", 3 })
local iterator = json.lines("x\n2", { on_error = function(problem) _G.error("no: " .. problem.text) end })
check.raises(iterator, "no: x")
check.equal(iterator(), 2)

-- With `types` a value whose fields have other types is an error, too.
seen = {}
local lines = '{"n":1,"s":"a"}\n{"n":1.5,"s":"a"}\n{"n":2}\n{"s":"a"}\n[1]\n7\n{"n":3,"s":["a"]}\n{"n":4,"s":"b","more":true}'
for value in json.lines(lines, { types = { n = "integer", s = "string?" }, on_error = function(problem)
  check.equal(problem.code, "json")
  seen[#seen + 1] = problem.line .. ":" .. problem.message:match "lines.lua:%d+: (.-) at line"
end }) do seen[#seen + 1] = value.n end
check.same(seen, {
  1, "2:field 'n': integer expected, got number", 2, "4:field 'n': integer expected, got nil",
  "5:field 'n': integer expected, got nil", "6:expected an object", "7:field 's': string? expected, got json.array", 4,
})
check.raises(json.lines('{"n":"x"}', { types = { n = "integer" } }), "field 'n': integer expected, got string at line 1")
check.usage(function() json.lines("", { types = { n = "int" } }) end, "lines", "#2", "field 'types': unknown type 'int'")
check.usage(function() json.lines("", { types = { "integer" } }) end, "lines", "#2", "field 'types'", "table of strings")
check.usage(function() json.lines("", { types = 5 }) end, "lines", "#2", "field 'types'")
