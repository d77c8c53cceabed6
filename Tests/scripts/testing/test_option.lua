-- `--test` executes the tests of files: each failure has its place and both values, and the forms of the outcome say the same.
local fs, host, check = require "flow.fs", require "host", require "check"

local folder = fs.temp_dir()
local function write(name, text) fs.write(folder .. "/" .. name, text) end
local function read(name) return fs.read(folder .. "/" .. name) end
local function quoted(text) return "'" .. text:gsub("'", [['\'']]) .. "'" end
local binary = quoted(fs.exists(host.binary) and host.run("realpath", { host.binary }).stdout:sub(1, -2) or host.binary)

-- Executes the tests of the folder.
local function test(words, status)
  local result = host.run("sh", { "-c", ("cd %s && exec %s %s 2>&1"):format(quoted(folder), binary, words) })
  check.equal(result.status, status, result.stdout)
  return result.stdout
end

-- Nothing to test is a failure.
check.contains(test("--test", 1), "there are no tests: no file *_test.lua in .")
check.contains(test("--test missing", 2), "there is no 'missing'")

write("lib.lua", [[
local lib = {}
function lib.add(a, b)
  if a == nil then
    return "never"
  end
  return a + b
end
function lib.unused(...)
  local x = ...
  return x
end
return lib
]])
write("calls_test.lua", [[
local flow, testing, lib = require "flow", require "flow.testing", require "lib"
local AOp = flow.op("AOp", function(ctx) ctx:log "one" ctx:log "two" end)
test("adds", function(t)
  t:equal(t.name, "adds")
  t:equal(lib.add(1, 2), 3)
  t:equal({ 0 / 0, { x = 1 } }, { 0 / 0, { x = 1.0 } })
  t:lines(testing.run(AOp), { "[AOp] WillStart", "two" })
  flow.sleep(1e6)
  assert(test == testing.test)
end)
test("differs", function(t)
  t:equal({ a = 1, b = { "x", { y = "z" } }, c = true }, { a = "1", b = { "x", { y = "w" } }, d = 1 })
  t:equal("a\nb\n", "a\nc\n")
  t:raises("boom", function() error "no" end)
  t:raises("boom", function() end)
  t:lines(testing.run(AOp), { "two", "one" })
  local err = t:raises("bo+m", function() flow.sleep(1) error { code = 7, "boom" } end)
end)
test("raises", function()
  error "deep"
end)
]])
write("returned_test.lua", [[
local tests = {}
function tests.second(t) t:equal(1, 1) end
function tests.first(t) print "printed" t:equal(1, 2) end
return tests
]])
local output = test("--test --jobs 1", 1)
check.contains(output, "TAP version 14\nok 1 - calls_test.lua: adds\nnot ok 2 - calls_test.lua: differs\n",
  [[
    calls_test.lua:12: .a: expected "1", got 1
    .b[2].y: expected "w", got "z"
    .c: expected nothing, got true
    .d: expected 1, got nothing
    calls_test.lua:13: line 2: expected "c", got "b"
    calls_test.lua:14: expected an error like "boom", got "calls_test.lua:14: no"
    calls_test.lua:15: expected an error like "boom", got none
    calls_test.lua:16: no line has "one" after "two"
    calls_test.lua:17: expected an error like "bo+m", got "table: ]], '  at: "calls_test.lua:12"\n  summary: |\n',
  "    12:00:00 AM [AOp] two\n", "not ok 3 - calls_test.lua: raises\n  ---\n  message: |\n    calls_test.lua:20: deep\n",
  "ok 4 - returned_test.lua: second\nnot ok 5 - returned_test.lua: first\n", "returned_test.lua:3: expected 2, got 1\n",
  "# the output of returned_test.lua:\n# printed\n", "1..5\n# 2 passed, 3 failed, in 2 files, seed ")
-- The end of the first failure.
output = test("--test --fail-fast --jobs 1 .", 1)
check.contains(output, "not ok 2", "1..2\n# 1 passed, 1 failed, in 1 file")
-- Names, options after paths.
check.contains(test("--test calls_test.lua --filter add", 0), "\n1..1\n# 1 passed, 0 failed, in 1 file\n")
check.contains(test("--test --filter nothing", 1), "there are no tests whose names have 'nothing'")

-- JUnit has the same, as XML.
test("--test --junit out.xml returned_test.lua", 1)
check.contains(read "out.xml", '<testsuite name="returned_test.lua" tests="2" failures="1"',
  '<testcase classname="returned_test.lua" name="second"',
  '<failure message="returned_test.lua:3: expected 2, got 1">', "<system-out>printed</system-out>")

-- Coverage: lines of scripts, not of tests.
output = test("--test --coverage --filter adds", 0)
check.contains(output, "# lib.lua: 66 % of 9 lines ran; never: 4, 9-10\n")
check.lacks(output, "_test.lua: 1", "_test.lua: 8")

-- Snapshots are written when asked, and compared.
write("snap_test.lua", [[test("a b", function(t) t:snapshot "one\ntwo" t:snapshot "x" end)]])
check.contains(test("--test snap_test.lua", 1), "there is no snapshot snap_test.a_b.snapshot: flowlua --test --update writes it")
test("--test --update snap_test.lua", 0)
check.equal(read "snap_test.a_b.snapshot" .. read "snap_test.a_b-2.snapshot", "one\ntwox")
test("--test snap_test.lua", 0)
write("snap_test.a_b.snapshot", "one\nthree")
check.contains(test("--test snap_test.lua", 1), "snap_test.a_b.snapshot is different",
  'line 2: expected "three", got "two"')

-- A seed always gives the same numbers and order; another one doesn't.
write("seed_test.lua", [[
for i = 1, 20 do test("t" .. i, function(t) t:equal(math.random(1e9), 0) end) end
]])
local function seeded(seed) return test("--test seed_test.lua --seed " .. seed, 1) end
check.equal(seeded(5), seeded(5))
assert(seeded(5) ~= seeded(6))
write("flaky_test.lua", [[test("flaky", function(t) t:equal(math.random(4) == 1, false) end)]])
output = test("--test flaky_test.lua --repeat 1000 --seed 1", 1)
local seed = output:match "# repetition %d+ of 1000, seed (%d+)\nnot ok"
assert(seed, output)
check.contains(test("--test flaky_test.lua --seed " .. seed, 1), "seed " .. seed)

-- Options that belong to --test need it, and others have no effect with it.
for _, words in ipairs { "--filter x a.lua", "--jobs 2", "--update calls_test.lua" } do
  check.contains(test(words, 2), "belongs to '--test'")
end
check.contains(test("--test --keep", 2), "option '--keep' can't be combined with '--test'")
check.contains(test("--test --jobs 0", 2), "option '--jobs' needs a number from 1 to 100000, not '0'")
check.contains(test("--test --junit calls_test.lua", 2), "would write over the script")
check.contains(test("--test --fail-fats", 2), "did you mean '--fail-fast'?")
