-- The checks of tests, and the execution of the tests of a file. The host calls this chunk once
-- with its own functions, and gets `test`, and a function that makes the main function of a file.
local host = ...
local getinfo, xpcall, pcall = debug.getinfo, xpcall, pcall
local error, type, tostring, rawequal, next, pairs, select, setmetatable =
  error, type, tostring, rawequal, next, pairs, select, setmetatable
local format, find, match, sub, gsub, gmatch, pack =
  string.format, string.find, string.match, string.sub, string.gsub, string.gmatch, string.pack
local concat, sort = table.concat, table.sort
local mathtype, random, randomseed, open = math.type, math.random, math.randomseed, io.open
local misuse = host.misuse

-- The session of `flowlua --test`; nil where a script runs its tests itself.
local session
-- The tests of the file, and their names.
local tests, names = {}, {}

-- MARK: Values as text

local function text_of(value)
  local ok, text = pcall(tostring, value)
  return ok and text or "a " .. type(value) .. " that has no text"
end

local function quoted(text)
  if #text > 400 then text = sub(text, 1, 400) .. "…" end
  text = gsub(format("%q", text), "\\\n", "\\n")
  return text
end

local function key_text(key)
  if type(key) == "string" then
    return find(key, "^[%a_][%w_]*$") and "." .. key or "[" .. quoted(key) .. "]"
  end
  return "[" .. text_of(key) .. "]"
end

-- The fields of a table, such as `run.data`, as one without a metatable.
local function content(t)
  local fields = {}
  for key, value in pairs(t) do fields[key] = value end
  return fields
end

-- Keys in an order that is the same each time: numbers, texts, others.
local function sorted_keys(...)
  local keys, known = {}, {}
  for _, t in next, { ... } do
    for key in next, t do
      if not known[key] then
        known[key] = true
        keys[#keys + 1] = key
      end
    end
  end
  sort(keys, function(a, b)
    local x, y = type(a), type(b)
    if x ~= y then return x < y end
    if x == "number" or x == "string" then return a < b end
    return text_of(a) < text_of(b)
  end)
  return keys
end

local function show(value, depth)
  if type(value) == "string" then return quoted(value) end
  if type(value) ~= "table" then return text_of(value) end
  depth = depth or 0
  local fields = content(value)
  if next(fields) == nil then return "{}" end
  if depth == 3 then return "{…}" end
  local parts, position = {}, 1
  for _, key in next, sorted_keys(fields) do
    if #parts == 20 then
      parts[#parts + 1] = "…"
      break
    end
    local shown = show(fields[key], depth + 1)
    if key == position then
      position = position + 1
    else
      shown = gsub(key_text(key), "^%.", "") .. " = " .. shown
    end
    parts[#parts + 1] = shown
  end
  return "{ " .. concat(parts, ", ") .. " }"
end

-- MARK: Differences

local function are_equal(a, b)
  if rawequal(a, b) or a ~= a and b ~= b then return true end
  local ok, equal = pcall(function() return a == b end)
  return ok and equal
end

local function lines_of(text)
  local lines = {}
  for line in gmatch(text .. "\n", "(.-)\n") do lines[#lines + 1] = line end
  return lines
end

-- Adds what is different to a list, key by key.
local function add_differences(list, path, got, expected, seen)
  if are_equal(got, expected) then return end
  if type(got) == "table" and type(expected) == "table" then
    if seen[got] == expected then return end
    seen[got] = expected
    local ours, theirs = content(got), content(expected)
    for _, key in next, sorted_keys(ours, theirs) do
      local a, b = ours[key], theirs[key]
      local place = path .. key_text(key)
      if a == nil then
        list[#list + 1] = place .. ": expected " .. show(b) .. ", got nothing"
      elseif b == nil then
        list[#list + 1] = place .. ": expected nothing, got " .. show(a)
      else
        add_differences(list, place, a, b, seen)
      end
    end
    return
  end
  local prefix = path == "" and "" or path .. ": "
  if type(got) == "string" and type(expected) == "string"
    and (find(got, "\n") or find(expected, "\n"))
  then
    local a, b = lines_of(got), lines_of(expected)
    local line = 1
    while a[line] == b[line] do line = line + 1 end
    local none = "no more lines"
    list[#list + 1] = prefix .. "line " .. line .. ": expected "
      .. (b[line] and quoted(b[line]) or none) .. ", got " .. (a[line] and quoted(a[line]) or none)
    return
  end
  local a, b = show(got), show(expected)
  if a == b then
    a = a .. " (a " .. (mathtype(got) or type(got)) .. ")"
    b = b .. " (another " .. (mathtype(expected) or type(expected)) .. ")"
  end
  list[#list + 1] = prefix .. "expected " .. b .. ", got " .. a
end

local function difference(got, expected)
  local list = {}
  add_differences(list, "", got, expected, {})
  local count = #list
  if count == 0 then return nil end
  if count > 30 then
    list[31] = "and " .. count - 30 .. " more differences"
    count = 31
  end
  return concat(list, "\n", 1, count)
end

-- MARK: Checks

-- The place of the code that has called a check, in the script.
local function place_of_caller()
  for level = 3, 200 do
    local info = getinfo(level, "Sl")
    if info == nil then return "" end
    if info.currentline > 0 then return info.short_src .. ":" .. info.currentline end
  end
  return ""
end

local checks = {}
local running = setmetatable({}, { __mode = "k" })

-- The test whose checks these are.
local function test_of(t, name)
  local test = type(t) == "table" and running[t]
  if not test then
    misuse("calling '" .. name .. "' on bad self (test expected, got " .. type(t)
      .. "): write t:" .. name)
  end
  return test
end

local function wrong(name, index, expected, value)
  local got = value == "" and "an empty string" or type(value)
  misuse("bad argument #" .. index .. " to '" .. name .. "' (" .. expected .. " expected, got "
    .. got .. ")")
end

local function fail(test, message)
  test.failures[#test.failures + 1] = { place = place_of_caller(), message = message }
  return false
end

function checks.equal(t, ...)
  local test = test_of(t, "equal")
  if select("#", ...) < 2 then
    misuse "bad argument #2 to 'equal' (the expected value is missing; nil is one)"
  end
  local got, expected = ...
  local message = difference(got, expected)
  if message == nil then return true end
  return fail(test, message)
end

function checks.raises(t, pattern, fn, ...)
  local test = test_of(t, "raises")
  if type(pattern) ~= "string" then wrong("raises", 1, "pattern", pattern) end
  if type(fn) ~= "function" then wrong("raises", 2, "function", fn) end
  local is_pattern, problem = pcall(find, "", pattern)
  if not is_pattern then misuse("bad argument #1 to 'raises' (" .. problem .. ")") end
  local ok, raised = pcall(fn, ...)
  if ok then
    fail(test, "expected an error like " .. quoted(pattern) .. ", got none")
    return nil
  end
  if host.ends() then error(raised, 0) end
  if not find(text_of(raised), pattern) then
    fail(test, "expected an error like " .. quoted(pattern) .. ", got "
      .. quoted(text_of(raised)))
  end
  return raised
end

function checks.lines(t, run, expected)
  local test = test_of(t, "lines")
  local summary = host.summary(run)
  if summary == nil then wrong("lines", 1, "run", run) end
  if type(expected) ~= "table" then wrong("lines", 2, "list of texts", expected) end
  local lines, position = lines_of(summary), 0
  for index = 1, #expected do
    local line = expected[index]
    if type(line) ~= "string" then wrong("lines", 2, "list of texts", line) end
    local at = position + 1
    while lines[at] and not find(lines[at], line, 1, true) do at = at + 1 end
    if not lines[at] then
      local before = index > 1 and " after " .. quoted(expected[index - 1]) or ""
      test.summary = summary
      return fail(test, "no line has " .. quoted(line) .. before)
    end
    position = at
  end
  return true
end

local function read(path)
  local file = open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

function checks.snapshot(t, text)
  local test = test_of(t, "snapshot")
  if type(text) ~= "string" then wrong("snapshot", 1, "string", text) end
  test.snapshots = test.snapshots + 1
  local path = host.file()
  if not path then misuse("bad use of 'snapshot' (only in the file of a script)") end
  local name = sub(gsub(test.name, "[^%w_-]", "_"), 1, 100)
  if test.snapshots > 1 then name = name .. "-" .. test.snapshots end
  path = gsub(path, "%.lua$", "") .. "." .. name .. ".snapshot"
  local other = names[path]
  if other and other ~= test.name then
    return fail(test, "the snapshot of the test '" .. other .. "' has the name " .. path
      .. ", too: rename one of them")
  end
  names[path] = test.name
  local known = read(path)
  if known == text then return true end
  if session and session.update then
    local file, problem = open(path, "wb")
    if not file then return fail(test, "can't write the snapshot: " .. problem) end
    file:write(text)
    file:close()
    return true
  end
  if not known then
    return fail(test, "there is no snapshot " .. path .. ": flowlua --test --update writes it")
  end
  return fail(test, path .. " is different (flowlua --test --update replaces it):\n"
    .. difference(text, known))
end

local checks_metatable = {
  __index = function(t, key)
    local check = checks[key]
    if check then return check end
    if key == "name" then return running[t] and running[t].name end
    misuse("a test has no field '" .. text_of(key)
      .. "': it has equal, lines, name, raises and snapshot")
  end,
  __newindex = function(_, key) misuse("can't set '" .. text_of(key) .. "' of a test") end,
  __name = "test",
}

-- MARK: Running a test

-- The failure that a raised value is.
local function raised_failure(raised)
  local text = text_of(raised)
  local place, message = nil, text
  local file, line, rest = match(text, "^([^\n]-):(%d+): (.*)$")
  if file then place, message = file .. ":" .. line, rest end
  return { place = place or "", message = message, raised = true }
end

local function with_traceback(raised)
  local frames = {}
  for level = 2, 100 do
    local info = getinfo(level, "Sl")
    if info == nil then break end
    local place = info.currentline > 0 and info.short_src .. ":" .. info.currentline
    if place and frames[#frames] ~= place then frames[#frames + 1] = place end
  end
  return { raised = raised, frames = frames }
end

-- Executes a test; its failures are in `test.failures`.
local function execute(test)
  local t = setmetatable({}, checks_metatable)
  test.failures, test.snapshots = {}, 0
  running[t] = test
  host.begin()
  local ok, problem = xpcall(test.run, with_traceback, t)
  if not ok then
    -- No handler is called when memory runs out, or when it fails itself.
    if type(problem) ~= "table" then problem = { raised = problem, frames = {} } end
    local failure = raised_failure(problem.raised)
    if failure.place == "" then failure.place = problem.frames[1] or "" end
    local frames = problem.frames
    if frames[2] then
      failure.message = failure.message .. "\ncalled from "
        .. concat(frames, ", ", 2, #frames > 6 and 6 or #frames)
    end
    test.failures[#test.failures + 1] = failure
  end
  return #test.failures == 0, problem
end

local function add(name, run)
  if names["test " .. name] then
    misuse("bad argument #1 to 'test' (another test of the file is called '" .. name .. "')")
  end
  names["test " .. name] = true
  tests[#tests + 1] = { name = name, run = run }
end

local function test(name, run)
  if type(name) ~= "string" or name == "" then wrong("test", 1, "non-empty name", name) end
  if type(run) ~= "function" then wrong("test", 2, "function", run) end
  if session then
    if session.began then misuse("bad use of 'test' (within a test)") end
    return add(name, run)
  end
  local one = { name = name, run = run }
  if execute(one) then return end
  local texts = {}
  for index, failure in next, one.failures do
    texts[index] = (failure.place == "" and "" or failure.place .. ": ") .. failure.message
  end
  error("test '" .. name .. "' failed: " .. concat(texts, "\n"), 0)
end

-- MARK: The file of a session

local function record(...)
  local fields = { ... }
  local bytes = { pack("<I1", #fields) }
  for index, field in next, fields do bytes[index + 1] = pack("<s4", tostring(field)) end
  host.record(concat(bytes))
end

-- The tests of a table: functions by their names, in the order of their lines.
local function add_returned(returned)
  if returned == nil or returned == true then return end
  if type(returned) ~= "table" then
    error("a test file returns a table of functions, or nothing, not a " .. type(returned), 0)
  end
  local list = {}
  for name, run in next, returned do
    if type(name) ~= "string" or type(run) ~= "function" then
      error("a test file returns a table of functions by their names; " .. key_text(name)
        .. " is a " .. type(run), 0)
    end
    list[#list + 1] = { name, run, getinfo(run, "S").linedefined }
  end
  sort(list, function(a, b) return a[3] < b[3] or a[3] == b[3] and a[1] < b[1] end)
  for _, item in next, list do add(item[1], item[2]) end
end

local coverage

-- Executes the tests of the session; what the file returns may have some.
local function execute_all(returned)
  add_returned(returned)
  session.began = true
  if session.shuffles then
    randomseed(session.seed)
    for index = #tests, 2, -1 do
      local other = random(index)
      tests[index], tests[other] = tests[other], tests[index]
    end
  end
  record("tests", #tests)
  local failed = false
  for _, each in next, tests do
    if not session.filter or find(each.name, session.filter, 1, true) then
      -- A test alone draws what it draws among others.
      randomseed(session.seed)
      record("begin", each.name)
      local started = host.clock()
      local ok, problem = execute(each)
      local seconds = host.clock() - started
      for _, failure in next, each.failures do
        record("failure", failure.place, failure.message)
      end
      if not ok then
        local summary = each.summary or host.last_summary()
        if summary then record("summary", summary) end
      end
      record("end", ok and "passed" or "failed", format("%.3f", seconds))
      failed = failed or not ok
      -- A limit or a signal ends the file, not only a test.
      if host.ends() then error(problem and problem.raised or "interrupted!", 0) end
      if failed and session.fail_fast then break end
    end
  end
  if coverage then coverage() end
  record("done")
end

-- The main function of a test file.
local function main(chunk, settings)
  session = settings
  return function(...)
    if session.coverage then coverage = host.cover(record, host) end
    record("file")
    return execute_all(chunk(...))
  end
end

return test, main
