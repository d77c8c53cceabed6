-- flow.read and io.read of a worker share the input: nothing is lost, doubled, or waited for in vain.
-- clock: real: the virtual clock stands still while input is awaited
local flow, check, host = require "flow", require "check", require "host"

local function start(text)
  local name = os.tmpname()
  local file = assert(io.open(name, "wb"))
  file:write("local flow = require 'flow'\n", text)
  file:close()
  return flow.exec({ host.binary, name }, { stdin = "pipe", timeout = 100 }), name
end

-- Both wait when two lines arrive at once. The main thread is busy, so the worker takes both into the
-- buffer, and uses one.
local program, name = start [[
  local LineOp = flow.op("LineOp", {
    thread = "worker", gives = { line = "string" },
    run = function(ctx) ctx:set("line", io.read()) end,
  })
  local run = LineOp:start()
  local reading = flow.spawn(function() return flow.read() end)
  flow.sleep(0.1)
  print "ready"
  io.stdout:flush()
  os.execute "sleep 0.2"
  local lines = { run:await().line, reading:await() }
  table.sort(lines)
  print(table.concat(lines, " "))
]]
local seen
for line in program:lines() do
  seen = line
  if line == "ready" then program:write "a\nb\n" end
end
program:await()
os.remove(name)
check.equal(seen, "a b")

-- Many lines, in pieces of all lengths: each byte gets to one of both.
program, name = start [[
  local LinesOp = flow.op("LinesOp", {
    thread = "worker", gives = { text = "string" },
    run = function(ctx)
      local got = {}
      print "ready"
      io.stdout:flush()
      for line in io.lines(nil, "L") do got[#got + 1] = line end
      ctx:set("text", table.concat(got))
    end,
  })
  local run = LinesOp:start()
  local got = {}
  while true do
    local line = flow.read "L"
    if not line then break end
    got[#got + 1] = line
  end
  local counts = {}
  for letter in (table.concat(got) .. run:await().text):gmatch "%l" do
    counts[letter] = (counts[letter] or 0) + 1
  end
  local letters = {}
  for letter, count in pairs(counts) do letters[#letters + 1] = letter .. count end
  table.sort(letters)
  print(table.concat(letters, " "))
]]
local alphabet = "abcdefghijklmnopqrstuvwxyz"
for line in program:lines() do
  seen = line
  if line == "ready" then
    for i = 1, 300 do
      program:write(alphabet:sub(1, i % 26 + 1) .. "\n" .. alphabet:sub(i % 26 + 2) .. "\n")
      if i % 50 == 0 then flow.sleep(0.002) end
    end
    program:close_stdin()
  end
end
program:await()
os.remove(name)
check.equal(seen, (alphabet:gsub(".", "%0300 "):gsub(" $", "")))
