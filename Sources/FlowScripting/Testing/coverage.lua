-- The lines of scripts that tests have executed. The host calls this chunk with its own functions
-- and one that records something; it begins at once, and returns the function that records them.
local host, record = ...
local getinfo, sethook, loadfile, open, next = debug.getinfo, debug.sethook, loadfile, io.open, next
local find, match, gmatch, byte_at, unpack, dump =
  string.find, string.match, string.gmatch, string.byte, string.unpack, string.dump
local concat, sort = table.concat, table.sort

-- The lines of a file; none if it can't be read.
local function text_lines(path)
  local file, lines = open(path, "rb"), {}
  if not file then return lines end
  for line in gmatch(file:read "a" .. "\n", "(.-)\n") do lines[#lines + 1] = line end
  file:close()
  return lines
end

-- Reads the lines that have code from the bytes of a function, as string.dump gives them.
local function executable_lines(path)
  local chunk = loadfile(path)
  if not chunk then return nil end
  local bytes, at, lines = dump(chunk), 1, {}
  local function byte()
    at = at + 1
    return byte_at(bytes, at - 1)
  end
  local function number()
    local value = 0
    while true do
      local part = byte()
      value = value << 7 | part & 0x7f
      if part & 0x80 ~= 0 then return value end
    end
  end
  local function skip_text()
    local size = number()
    if size > 1 then at = at + size - 1 end
  end
  local function list(skip)
    for _ = 1, number() do skip() end
  end
  local function constant()
    local kind = byte()
    if kind == 0x13 or kind == 0x03 then
      at = at + 8
    elseif kind == 0x04 or kind == 0x14 then
      skip_text()
    end
  end
  local function code()
    skip_text()
    local line = number()
    number()
    byte()
    local is_vararg = byte() ~= 0
    byte()
    local count = number()
    at = at + 4 * count
    list(constant)
    list(function() at = at + 3 end)
    list(code)
    local deltas = {}
    for index = 1, number() do deltas[index] = unpack("b", bytes, at); at = at + 1 end
    local absolute = {}
    list(function()
      local pc = number()
      absolute[pc] = number()
    end)
    list(function() skip_text(); number(); number() end)
    list(skip_text)
    for index, delta in next, deltas do
      line = delta == -128 and absolute[index - 1] or line + delta
      -- The first instruction of a function with `...` has no line of its own.
      if not (is_vararg and index == 1) then lines[line] = true end
    end
  end
  -- The header: signature, version, format, data, sizes, an integer, a number.
  at = 4 + 1 + 1 + 6 + 3 + 8 + 8 + 1 + 1
  code()
  -- An `end` has an instruction that is reached only by falling out of the function.
  local text = text_lines(path)
  for line in next, lines do
    local code_text = text[line] or ""
    if find(code_text, "^%s*end[%s%),;}%]]*$") or find(code_text, "^%s*$")
      or find(code_text, "^%s*%-%-")
    then
      lines[line] = nil
    end
  end
  return lines
end

local function listed(lines)
  local list = {}
  for line in next, lines do list[#list + 1] = line end
  sort(list)
  return concat(list, " ")
end

local hits = {}
sethook(function(_, line)
  -- The host's own functions have no lines.
  if not line then return end
  local source = getinfo(2, "S").source
  local lines = hits[source]
  if not lines then
    lines = {}
    hits[source] = lines
  end
  lines[line] = true
end, "l")

return function()
  sethook()
  for source, lines in next, hits do
    local path = match(source, "^@(.*)$")
    path = path and host.relative(path)
    if path and not find(path, "_test%.lua$") then
      local executable = executable_lines(path)
      if executable then record("coverage", path, listed(lines), listed(executable)) end
    end
  end
end
