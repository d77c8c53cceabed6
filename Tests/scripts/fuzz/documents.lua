-- Random documents of JSON and CSV come back the same; damaged ones are refused or read, without a crash.
-- `args: COUNT SEED` repeats a run.
local json, csv = require "flow.json", require "flow.csv"
local check = require "check"

local count = tonumber(arg[1]) or 1500
local seed = tonumber(arg[2]) or os.time() ~ (tonumber(tostring({}):match("0x(%x+)"), 16) or 0)
math.randomseed(seed)
local random = math.random

local pieces = {
  "", "a", "é", "€", "😀", "\"", "\\", "/", "\n", "\r\n", "\t", "\0", "\x7f", " ", ",", ";", "\u{2028}",
  "longer than eight bytes", ("x"):rep(50), "\u{10FFFF}", "0", "-1", "null",
}
local function text()
  local parts = {}
  for i = 1, random(0, 6) do parts[i] = pieces[random(#pieces)] end
  return table.concat(parts)
end

local function number()
  local kind = random(5)
  if kind == 1 then return random(-100, 100) end
  if kind == 2 then return random(0) end
  if kind == 3 then return random(-1000, 1000) / 8 end
  local float
  repeat float = string.unpack("<d", string.pack("<i8", random(0))) until float - float == 0
  return float
end

local function value(depth)
  local kind = random(depth > 5 and 5 or 8)
  if kind == 1 then return random(2) == 1 end
  if kind == 2 then return number() end
  if kind <= 4 then return text() end
  if kind == 5 then return json.null end
  local size = random(20) == 1 and random(0, 300) or random(0, 5)
  local made = {}
  if kind == 6 or kind == 7 then
    for i = 1, size do made[i] = value(depth + (size > 10 and 9 or 1)) end
    return json.array(made)
  end
  for _ = 1, size do made[text() .. random(99)] = value(depth + (size > 10 and 9 or 1)) end
  return made
end

local function damaged(document)
  local at = random(0, #document)
  local way = random(4)
  if way == 1 then return document:sub(1, at) end
  if way == 2 then return document:sub(1, at) .. document:sub(at + random(3)) end
  local bytes = { "\"", "\\", "[", "]", "{", "}", ",", ":", "0", "-", "e", ".", "\xff", "\xe2", "\0", "\n", "n", "\\u" }
  return document:sub(1, at) .. bytes[random(#bytes)] .. document:sub(at + (way == 3 and 1 or 2))
end

-- Expects the usual error for a document that is refused.
local function refused(read, document, code)
  local ok, problem = pcall(read, document)
  if ok then return end
  if type(problem) == "string" then error(problem .. ": " .. ("%q"):format(document), 0) end
  check.equal(problem.kind, "error")
  check.equal(problem.code, code)
  assert(problem.line >= 1 and not problem.column or problem.column >= 1)
end

local function rows(document, options)
  local list = {}
  for row in csv.rows(document, options) do list[#list + 1] = row end
  return list
end

local function round()
  local made = value(0)
  local options = { indent = random(3) - 1, ascii = random(2) == 1, sort = random(2) == 1 }
  local document = json.encode(made, options)
  local back = json.decode(document, { null = "keep", strict = true })
  check.equal(json.encode(back), json.encode(made))
  check.equal(json.encode(json.decode(document, { null = "keep" })), json.encode(made))
  for _ = 1, 3 do
    refused(function(each)
      local read = json.decode(each, { null = "keep" })
      check.equal(json.encode(json.decode(json.encode(read), { null = "keep" })), json.encode(read))
    end, damaged(document), "json")
  end
  local lists, width = {}, random(6)
  for i = 1, random(8) do
    lists[i] = {}
    for j = 1, width do lists[i][j] = text() end
  end
  local separator = random(2) == 1 and "," or ";"
  local table_text = csv.encode(lists, { separator = separator, newline = random(2) == 1 and "\n" or "\r\n" })
  check.same(rows(table_text, { header = false, separator = separator }), lists)
  refused(rows, damaged(table_text), "csv")
  refused(function(each) return rows(each, { header = false }) end, damaged(table_text), "csv")
end

for i = 1, count // 4 do
  local ok, problem = pcall(round)
  if not ok then error(("seed %d, round %d: %s"):format(seed, i, tostring(problem)), 0) end
end
