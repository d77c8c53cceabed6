-- Executes the tests of files, each in a process of its own, and reports the outcome. The program
-- calls this chunk with its options, and gets the main function.
local settings = ...
local flow = require "flow"
local fs = flow.fs
local reports = settings.reports()

-- The real seconds that a file has without --time-limit.
local usual_time = 60
-- The lines of a file's own output that a failure shows.
local shown_lines = 40

local function say(text) io.stderr:write(settings.program, ": ", text, "\n") end

local function misuse(text)
  say(text)
  os.exit(2, true)
end

-- The files to execute, without repetition, sorted.
local function find_files()
  local files, known = {}, {}
  local function add(path)
    path = path:gsub("^%./", "")
    if not known[path] then files[#files + 1] = path end
    known[path] = true
  end
  local paths = #settings.paths > 0 and settings.paths or { "." }
  for _, path in ipairs(paths) do
    local stat = fs.stat(path, { follow = true })
    if not stat then misuse("option '--test': there is no '" .. path .. "'") end
    if stat.type == "directory" then
      for _, file in ipairs(fs.list(path, { recursive = true, match = "*_test.lua" })) do
        local found = fs.stat(file, { follow = true })
        if found and found.type == "file" then add(file) end
      end
    else
      add(path)
    end
  end
  table.sort(files)
  return files
end

-- The records that the process of a file has written; the last may be cut off.
local function read_records(path)
  local records, at = {}, 1
  local bytes = fs.read(path)
  while at <= #bytes do
    local record = {}
    local ok = pcall(function()
      local count
      count, at = string.unpack("<I1", bytes, at)
      for index = 1, count do record[index], at = string.unpack("<s4", bytes, at) end
    end)
    if not ok then break end
    records[#records + 1] = record
  end
  return records
end

-- Reads what happened in a file.
local function read_result(file, path)
  local result = { file = file, tests = {}, failures = {}, coverage = {}, count = 0 }
  local test
  for _, record in ipairs(read_records(path)) do
    local kind = record[1]
    if kind == "file" then
      result.began = true
    elseif kind == "tests" then
      result.count = tonumber(record[2])
      result.loaded = true
    elseif kind == "begin" then
      test = { name = record[2], failures = {}, seconds = 0 }
      result.tests[#result.tests + 1] = test
    elseif kind == "failure" then
      test.failures[#test.failures + 1] = { place = record[2], message = record[3] }
    elseif kind == "summary" then
      test.summary = record[2]
    elseif kind == "end" then
      test.outcome, test.seconds = record[2], tonumber(record[3])
    elseif kind == "coverage" then
      result.coverage[#result.coverage + 1] = { file = record[2], hit = record[3], all = record[4] }
    elseif kind == "done" then
      result.done = true
    end
  end
  return result
end

-- How many files have been executed.
local number = 0

-- Executes a file; what was wrong with it as a whole is in `result.failures`.
local function execute(file, seed, folder)
  number = number + 1
  local records = folder .. "/" .. number
  fs.write(records, "")
  local fields = { "results=" .. records, "seed=" .. seed }
  if settings.filter then fields[#fields + 1] = "filter=" .. settings.filter end
  if settings.shuffles then fields[#fields + 1] = "shuffles=1" end
  if settings.fail_fast then fields[#fields + 1] = "failsFast=1" end
  if settings.update then fields[#fields + 1] = "updates=1" end
  if settings.coverage then fields[#fields + 1] = "covers=1" end
  local words = { table.unpack(settings.command) }
  local limit = settings.time or usual_time
  if not settings.time then words[#words + 1] = "--time-limit=" .. limit end
  words[#words + 1] = "--virtual-clock"
  words[#words + 1] = "--"
  words[#words + 1] = file
  local grace = settings.grace or 30
  local program = flow.exec(words, {
    check = false,
    -- The process ends itself; this is for one that can't.
    timeout = limit + (grace < math.huge and grace or limit) + 5,
    env = {
      FLOWLUA_TEST = table.concat(fields, "\1"), FLOWLUA_KEEP = false, FLOWLUA_REMOTE = false,
    },
  })
  local started = flow.now()
  -- The last lines: a test may print without an end.
  local lines, count = {}, 0
  for line in program:lines() do
    count = count + 1
    lines[count] = line:sub(1, 2000)
    lines[count - shown_lines] = nil
  end
  program:wait()
  local result = read_result(file, records)
  fs.remove(records)
  result.seconds = flow.now() - started
  result.output = table.concat(lines, "\n", math.max(1, count - shown_lines + 1), count)
  result.is_cut = count > shown_lines
  local last = result.tests[#result.tests]
  local during = last and not last.outcome and last or nil
  local problem
  if program.error and program.error.kind == "timeout" or program.status == 124 then
    problem = "no end after " .. ("%g"):format(limit) .. " s (--time-limit)"
  elseif program.error and program.error.kind ~= "error" then
    problem = tostring(program.error)
  elseif program.signal then
    problem = "ended by signal " .. program.signal
  elseif not result.began then
    problem = "couldn't be loaded"
  elseif not result.loaded then
    problem = program.status == 0 and "ended before its tests" or "failed before its tests"
  elseif not result.done and not (settings.fail_fast and last and last.outcome == "failed") then
    problem = "ended with status " .. tostring(program.status) .. " before all tests had"
  elseif result.count == 0 then
    problem = "has no test: it calls test(name, function), or returns a table of functions"
  elseif program.status ~= 0 then
    problem = "ended with status " .. tostring(program.status) .. " after its tests"
  end
  if problem and program.status == 124 and last and last.outcome == "failed" then
    -- The test that was too slow says so itself.
    local rest = result.count - #result.tests
    problem = rest > 0 and problem .. "; tests that weren't executed: " .. rest or nil
  end
  if during then
    during.outcome = "failed"
    during.failures[#during.failures + 1] = { place = "", message = problem or "it didn't end" }
  elseif problem then
    result.failures[#result.failures + 1] = { place = "", message = problem }
  end
  result.failed = #result.failures > 0
  for _, each in ipairs(result.tests) do
    if each.outcome == "failed" then result.failed = true end
  end
  return result
end

-- Executes all files once; returns their results in the order of the files, and whether one failed.
local function execute_all(files, seed, folder, report)
  local next_file, results, failed = 1, {}, false
  local ended, shown = {}, 0
  local function work()
    while next_file <= #files and not (failed and settings.fail_fast) do
      local index = next_file
      next_file = next_file + 1
      local result = execute(files[index], seed, folder)
      ended[index] = result
      failed = failed or result.failed
      -- Shown in the order of the files, whatever the order of their ends.
      while ended[shown + 1] do
        shown = shown + 1
        results[shown] = ended[shown]
        report(ended[shown])
      end
    end
  end
  local workers = {}
  for index = 1, math.min(settings.jobs, #files) do workers[index] = flow.spawn(work) end
  for _, worker in ipairs(workers) do worker:await() end
  -- Those that ended after the first that wasn't executed.
  for index = shown + 1, #files do
    if ended[index] then
      results[#results + 1] = ended[index]
      report(ended[index])
    end
  end
  return results, failed
end

return function()
  local files = find_files()
  if #files == 0 then
    say("there are no tests: no file *_test.lua in " .. table.concat(
      #settings.paths > 0 and settings.paths or { "." }, ", "))
    os.exit(1, true)
  end
  local folder = fs.temp_dir()
  local report = reports.new(settings)
  local failed, all = false, {}
  for repetition = 1, settings.repetitions do
    local seed = settings.seed + repetition - 1
    report:begin(repetition, seed)
    local results, has_failed = execute_all(files, seed, folder, function(result)
      report:file(result)
    end)
    for _, result in ipairs(results) do all[#all + 1] = result end
    if has_failed then
      failed = true
      break
    end
  end
  local count = report:finish(all)
  if settings.junit then
    local ok, problem = pcall(fs.write, settings.junit, reports.junit(all))
    if not ok then
      say("can't write the file of '--junit': " .. tostring(problem))
      failed = true
    end
  end
  if count == 0 and not failed then
    say(settings.filter and "there are no tests whose names have '" .. settings.filter .. "'"
      or "there are no tests")
    failed = true
  end
  io.stdout:flush()
  os.exit(failed and 1 or 0, true)
end
