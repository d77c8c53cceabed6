-- Test files that can't be loaded, hang, end, fork, print without an end or reach outside fail, and the others are executed.
local fs, host, check = require "flow.fs", require "host", require "check"

local folder, outside = fs.temp_dir(), fs.temp_dir()
local function quoted(text) return "'" .. text:gsub("'", [['\'']]) .. "'" end
local binary = quoted(host.run("realpath", { host.binary }).stdout:sub(1, -2))

-- Executes one file with this text, beside another that passes.
local function test(text, words)
  fs.write(folder .. "/a_test.lua", text)
  fs.write(folder .. "/z_test.lua", [[test("last", function() end)]])
  local result = host.run("sh", {
    "-c", ("cd %s && exec %s --test %s 2>&1"):format(quoted(folder), binary, words or ""),
  })
  check.equal(result.status, 1, result.stdout)
  check.contains(result.stdout, "z_test.lua: last\n", "passed, ")
  return result.stdout
end
local function expect(text, ...) check.contains(test(text), ...) end

expect("local x = = 1", "not ok 1 - a_test.lua\n", "couldn't be loaded", "# ", "a_test.lua:1: unexpected symbol near '='")
expect("error 'early'", "failed before its tests", "a_test.lua:1: early")
expect("os.exit(0)", "ended before its tests")
expect("return 5", "failed before its tests", "a test file returns a table of functions, or nothing, not a number")
expect("return { 5 }", "returns a table of functions by their names; [1] is a number")
expect("print 'only'", "has no test: it calls test(name, function), or returns a table of functions")
expect([[test("x", function() os.exit(3) end) test("y", function() end)]], "not ok 1 - a_test.lua: x\n",
  "ended with status 3 before all tests had")
expect([[test("x", function() os.exit(0) end)]], "ended with status 0 before all tests had")
expect([[test("x", function() end) test("x", function() end)]], "a_test.lua:1: bad argument #1 to 'test'",
  "another test of the file is called 'x'")
expect([[test(5, print)]], "a_test.lua:1: bad argument #1 to 'test' (non-empty name expected, got number)")
expect([[test("", print)]], "a_test.lua:1: bad argument #1 to 'test' (non-empty name expected, got an empty string)")
expect([[test("x")]], "a_test.lua:1: bad argument #2 to 'test' (function expected, got nil)")
expect([[test("x", function() test("y", print) end)]], "bad use of 'test' (within a test)")
expect([[test("x", function(t) t.equal(1, 2) end)]],
  "calling 'equal' on bad self (test expected, got number): write t:equal")
expect([[test("x", function(t) t:equal(1) end)]], "a_test.lua:1: bad argument #2 to 'equal'")
expect([[test("x", function(t) t:raises("[", print) end)]], "bad argument #1 to 'raises' (malformed pattern")
expect([[test("x", function(t) t:raises("a") end)]], "bad argument #2 to 'raises' (function expected, got nil)")
expect([[test("x", function(t) t:lines(1, {}) end)]], "bad argument #1 to 'lines' (run expected, got number)")
expect([[test("x", function(t) t:snapshot() end)]], "bad argument #1 to 'snapshot' (string expected, got nil)")
expect([[test("x", function(t) t:same(1, 1) end)]], "a test has no field 'same'")
expect([[test("x", function() require "flow".context().task:await() end)]], "stalled: nothing can end this wait")
expect([[test("x", function() require "flow".failed "lost" end)]], "ended with status 1 after its tests", "lost")
expect([[test("x", function(t) local a = {} a.a = a local b = {} b.a = b t:equal(a, b) t:equal(a, { a = 1 }) end)]],
  ".a: expected 1, got ")
expect([[test("x\nok 9 - y # SKIP", function() error "\27[2J\0" end)]], "not ok 1 - a_test.lua: x ok 9 - y \\# SKIP\n",
  "\\x1b[2J\\x00")

-- Functions that reach out of the process.
expect([[test("x", function() require "flow".exec { "true" }:await() end)]], "program 'true' isn't replaced in this test")
expect([[test("x", function() io.popen "true" end)]], "a_test.lua:1: 'io.popen' starts a program")
expect([[test("x", function() os.execute "true" end)]], "a_test.lua:1: 'os.execute' starts a program")
expect([[test("x", function() require "flow".http "http://127.0.0.1/":await() end)]], "GET http://127.0.0.1/ isn't replaced")
if host.run(host.binary, { "--sandbox", "-e", "" }).status == 0 then
  expect(([[test("x", function() assert(io.open(%q, "w")) end)]]):format(outside .. "/f"), "Permission denied")
  expect(([[test("x", function() require "flow".fs.write(%q, "") end)]]):format(outside .. "/f"), "Permission denied (--allow-write)")
  assert(not fs.exists(outside .. "/f"))
  check.contains(test(([[test("x", function() assert(io.open(%q, "w")):close() end) test("y", function() error "z" end)]]):format(
    outside .. "/f"), "--allow-write=" .. outside), "ok 1 - a_test.lua: x\n")
  -- Its own folder, and the temporary one, are there for it.
  expect([[test("x", function()
    assert(io.open("made", "w")):close()
    os.remove(os.tmpname())
    require "flow".fs.write(require "flow".fs.temp_dir() .. "/f", "")
  end) test("y", function() error "z" end)]], "ok 1 - a_test.lua: x\n")
else
  check.skip "no sandbox, which keeps tests from the disk"
end

-- Time: what was executed stays in the outcome.
local output = test([[
  test("good", function() end)
  test("hangs", function() while true do end end)
  test("never", function() end)]], "--time-limit 1 --grace 1")
check.contains(output, "ok 1 - a_test.lua: good\nnot ok 2 - a_test.lua: hangs\n", "a_test.lua:2: the time limit of 1s was exceeded",
  "not ok 3 - a_test.lua\n", "no end after 1 s (--time-limit); tests that weren't executed: 1")
check.contains(test([[test("x", function() while true do pcall(print, ("x"):rep(1000)) end end)]], "--time-limit 1 --grace 1"),
  "the end of the output of a_test.lua:")
check.contains(test([[test("x", function() ("a"):rep(30):find((".-"):rep(30) .. "b") end)]], "--time-limit 1 --grace 1"),
  "not ok 1 - a_test.lua: x\n", "no end after 1 s")
