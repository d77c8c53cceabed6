-- Forms of the outcome of tests: lines for people, TAP for programs, XML of JUnit; and the lines of
-- scripts that never ran.
local reports = {}

-- Control characters that could move the cursor of a terminal, and bytes that are no text.
local function plain(text)
  text = text:gsub("[%z\1-\8\11-\31\127]", function(c) return ("\\x%02x"):format(c:byte()) end)
  if utf8.len(text) then return text end
  return (text:gsub("[\128-\255]", function(c) return ("\\x%02x"):format(c:byte()) end))
end

local function indented(text, indent)
  return indent .. plain(text):gsub("\n$", ""):gsub("\n", "\n" .. indent)
end

local function counted(count, noun) return count .. " " .. noun .. (count == 1 and "" or "s") end

-- The failures of a test or of a file, as text.
local function failure_text(failures)
  local texts = {}
  for _, failure in ipairs(failures) do
    texts[#texts + 1] = (failure.place == "" and "" or failure.place .. ": ") .. failure.message
  end
  return table.concat(texts, "\n")
end

local Report = {}
Report.__index = Report

function reports.new(settings)
  return setmetatable({
    settings = settings, number = 0, passed = 0, failed = 0, files = 0,
    shows_seed = settings.shuffles, seconds = 0,
  }, Report)
end

function Report:write(...) io.stdout:write(...) end

function Report:begin(repetition, seed)
  self.seed = seed
  if repetition == 1 and not self.settings.is_terminal then
    self:write "TAP version 14\n"
  end
  if self.settings.repetitions > 1 then
    local mark = self.settings.is_terminal and "" or "# "
    self:write(mark, "repetition ", repetition, " of ", self.settings.repetitions, ", seed ", seed,
      "\n")
  end
end

-- A test, or a file as a whole, in TAP.
function Report:tap(ok, name, failures, summary)
  self.number = self.number + 1
  name = plain(name):gsub("[\\#]", "\\%0"):gsub("\n", " ")
  self:write(ok and "ok " or "not ok ", self.number, " - ", name, "\n")
  if ok then return end
  self:write("  ---\n  message: |\n", indented(failure_text(failures), "    "), "\n")
  local place = failures[1] and failures[1].place or ""
  if place ~= "" then self:write("  at: ", ("%q"):format(plain(place)), "\n") end
  if summary then self:write("  summary: |\n", indented(summary, "    "), "\n") end
  self:write "  ...\n"
end

-- A file for people: one line, and its failures in full.
function Report:lines(result)
  local failed = 0
  for _, test in ipairs(result.tests) do
    if test.outcome ~= "passed" then failed = failed + 1 end
  end
  self:write(result.failed and "FAILED  " or "passed  ", plain(result.file), "  ",
    counted(#result.tests, "test"), (" in %.2f s\n"):format(result.seconds))
  for _, test in ipairs(result.tests) do
    if test.outcome ~= "passed" then
      self:write("\n  ", plain(test.name), "\n", indented(failure_text(test.failures), "    "),
        "\n")
      if test.summary then self:write("\n", indented(test.summary, "    "), "\n") end
    end
  end
  for _, failure in ipairs(result.failures) do self:write("\n  ", plain(failure.message), "\n") end
  if result.failed and result.output ~= "" then
    self:write("\n  ", result.is_cut and "the end of its output:" or "its output:", "\n",
      indented(result.output, "    "), "\n")
  end
  if result.failed then self:write "\n" end
end

-- Reports a file that has ended.
function Report:file(result)
  self.files = self.files + 1
  self.seconds = self.seconds + result.seconds
  for _, test in ipairs(result.tests) do
    local ok = test.outcome == "passed"
    self[ok and "passed" or "failed"] = self[ok and "passed" or "failed"] + 1
    if not self.settings.is_terminal then
      self:tap(ok, result.file .. ": " .. test.name, test.failures, test.summary)
    end
  end
  if #result.failures > 0 then
    self.failed = self.failed + 1
    if not self.settings.is_terminal then
      self:tap(false, result.file, result.failures)
    end
  end
  if self.settings.is_terminal then
    self:lines(result)
  elseif result.failed and result.output ~= "" then
    self:write("# ", result.is_cut and "the end of the output" or "the output", " of ",
      plain(result.file), ":\n", indented(result.output, "# "), "\n")
  end
  io.stdout:flush()
end

-- The lines of scripts that no test has executed.
function Report:coverage(results)
  local files, names = {}, {}
  for _, result in ipairs(results) do
    for _, part in ipairs(result.coverage) do
      local file = files[part.file]
      if not file then
        file = { hit = {}, all = part.all }
        files[part.file] = file
        names[#names + 1] = part.file
      end
      for line in part.hit:gmatch "%d+" do file.hit[tonumber(line)] = true end
    end
  end
  table.sort(names)
  local mark = self.settings.is_terminal and "" or "# "
  for _, name in ipairs(names) do
    local missed, count, from, last = {}, 0, nil, nil
    local executed = 0
    local function close()
      if from then missed[#missed + 1] = from == last and tostring(from) or from .. "-" .. last end
      from = nil
    end
    for text in files[name].all:gmatch "%d+" do
      local line = tonumber(text)
      count = count + 1
      if files[name].hit[line] then
        executed = executed + 1
        close()
      else
        from = from or line
        last = line
      end
    end
    close()
    local share = count == 0 and 100 or math.floor(100 * executed / count)
    self:write(mark, plain(name), ": ", share, " % of ", counted(count, "line"), " ran",
      #missed > 0 and "; never: " .. table.concat(missed, ", ") or "", "\n")
  end
end

-- Prints what follows all files; returns the number of tests.
function Report:finish(results)
  if self.settings.coverage then self:coverage(results) end
  local mark = self.settings.is_terminal and "" or "# "
  if not self.settings.is_terminal then self:write("1..", self.number, "\n") end
  local text = ("%d passed, %d failed, in %s"):format(
    self.passed, self.failed, counted(self.files, "file"))
  if self.shows_seed or self.failed > 0 then text = text .. ", seed " .. self.seed end
  self:write(mark, text, "\n")
  return self.passed + self.failed
end

-- MARK: JUnit

local function xml(text)
  local entities = {
    ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["\n"] = "&#10;",
  }
  return (plain(text):gsub('[&<>"\n]', entities))
end

-- The outcome of all files as XML of JUnit.
function reports.junit(results)
  local parts = { '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n' }
  local function add(...)
    for _, part in ipairs { ... } do parts[#parts + 1] = part end
  end
  local function case(file, name, seconds, failures)
    add('    <testcase classname="', xml(file), '" name="', xml(name),
      ('" time="%.3f"'):format(seconds))
    if not failures then return add "/>\n" end
    local text = failure_text(failures)
    add('>\n      <failure message="', xml(text:match "^[^\n]*"), '">', xml(text),
      "</failure>\n    </testcase>\n")
  end
  for _, result in ipairs(results) do
    local failed = #result.failures > 0 and 1 or 0
    for _, test in ipairs(result.tests) do
      if test.outcome ~= "passed" then failed = failed + 1 end
    end
    local count = #result.tests + (#result.failures > 0 and 1 or 0)
    add('  <testsuite name="', xml(result.file), '" tests="', count, '" failures="', failed,
      ('" time="%.3f">\n'):format(result.seconds))
    for _, test in ipairs(result.tests) do
      case(result.file, test.name, test.seconds, test.outcome ~= "passed" and test.failures or nil)
    end
    if #result.failures > 0 then case(result.file, result.file, 0, result.failures) end
    if result.failed and result.output ~= "" then
      add("    <system-out>", xml(result.output), "</system-out>\n")
    end
    add "  </testsuite>\n"
  end
  add "</testsuites>\n"
  return table.concat(parts)
end

return reports
