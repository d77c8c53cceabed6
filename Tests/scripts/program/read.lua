-- flow.read returns what io.read returns, for each kind of input, and both share their place.
local check, host = require "check", require "host"

local function both(text, input, prefix)
  local code = "local flow = require 'flow'\n" .. text
  local plain = "local flow = { read = io.read }\n" .. text
  local function run(body)
    local name = os.tmpname()
    local file = assert(io.open(name, "wb"))
    file:write(body)
    file:close()
    local result = host.run("sh", { "-c", prefix .. " exec \"$0\" \"$1\"", host.binary, name },
      { stdin = input })
    os.remove(name)
    check.equal(result.stderr, "")
    return result.stdout
  end
  local got, expected = run(code), run(plain)
  check.equal(got, expected, text .. " of " .. ("%q"):format(input:sub(1, 60)))
  return got
end

local show = [[
  local function show(...)
    local all = table.pack(...)
    for i = 1, all.n do
      local value = all[i]
      all[i] = math.type(value) and math.type(value) .. " " .. tostring(value) or
        type(value) == "string" and #value < 100 and ("%q"):format(value) or tostring(value and #value)
    end
    print(table.concat(all, " ", 1, all.n))
  end
]]
local cases = {
  { 'for _ = 1, 4 do show(flow.read()) end', { "", "a", "a\n", "a\n\nb", "\n", "a\0b\r\n\255" } },
  { 'show(flow.read "L") show(flow.read "*L") show(flow.read("l"))', { "a\nb", "\n\n", "" } },
  { 'show(flow.read "a") show(flow.read "a") show(flow.read())', { "", "a\nb", ("x"):rep(100000) } },
  { 'show(flow.read(3)) show(flow.read(0)) show(flow.read(2, 2.0)) show(flow.read(1))',
    { "", "ab", "abc", "abcd", "abcdefgh", "a\nb\nc\n" } },
  { 'show(flow.read(70000)) show(flow.read(0))', { ("x"):rep(70000), ("y"):rep(80000) } },
  { 'show(flow.read("n", "n", "l")) show(flow.read "a")', {
    "1 2 x\ny", " \n\t-0x1F 1e3\n", "0x.8p1 .5 z", "1..2", "1.5.5", "nan 3", "+ 1", "-", "0x", "1e", "5",
    "00012 0", ("1"):rep(199) .. " 1", ("1"):rep(201) .. " 1", "9223372036854775808 1", "1,2", "e5", "", "--1" } },
  { 'show(flow.read("l", "n", "L", 2, "a"))', { "a\n1\nbc\nd", "a", "", "a\n1", "a\nb" } },
  -- Both take turns, within lines too.
  { 'show(flow.read(1)) show(io.read()) show(flow.read "n") show(io.read(1)) show(flow.read())',
    { "abc\n12\ndef\n", "" } },
}
for _, prefix in ipairs { "", "cat |" } do
  for _, case in ipairs(cases) do
    for _, input in ipairs(case[2]) do both(show .. case[1], input, prefix) end
  end
end
local lines = {}
for i = 1, 20000 do lines[i] = "line " .. i end
local all = show .. [[
  local count, size = 0, 0
  while true do
    local line = flow.read()
    if not line then break end
    count, size = count + 1, size + #line
  end
  print(count, size)
]]
for _, prefix in ipairs { "", "cat |" } do
  check.equal(both(all, table.concat(lines, "\n"), prefix), "20000\t188894\n")
  both(all, ("x"):rep(5000000) .. "\nend", prefix)
end
-- Nothing to read, or nothing to read from.
both(all, "", "</dev/null")
both(show .. 'show(flow.read()) show(flow.read "a") show(flow.read(0))', "", "</dev/null")
both(show .. 'show(flow.read()) show(flow.read "a")', "", "exec <&-;")
both('print(flow.read())', "", "</;")
both(show .. 'io.stdin:setvbuf "no" show(flow.read "n", flow.read(), flow.read())', "1 x\nyz", "")
