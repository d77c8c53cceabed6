-- Wrong use of a long option ends with status 2 and a helpful message.
local host = require "host"
local check = require "check"

local result = host.run(host.binary, { "--help" })
check.equal(result.status, 0)
check.equal(result.stderr, "")
check.contains(result.stdout, "usage: ", "--summary", "--follow", "--color auto|always|never", "--events FILE", "--graph FILE",
  "--check", "--virtual-clock",
  "--workers N", "--no-progress", "--version", "-e STAT", "-l NAME=MOD", "130", "143")
for line in result.stdout:gmatch("[^\n]+") do assert(#line <= 100 or line:find("usage:", 1, true), line) end
result = host.run(host.binary, { "--version" })
check.equal(result.status, 0)
check.contains(result.stdout, "Lua 5.4.4", ("\nflowlua %s\n"):format(require "flow".version))

for _, case in ipairs {
  { "--versoin", "unrecognized option '--versoin' (did you mean '--version'?)" },
  { "--summry", "'--summary'" }, { "--virtualclock", "'--virtual-clock'" }, { "--chekc", "'--check'" },
  { "--noprogress", "'--no-progress'" }, { "--xyzzy", "did you mean" },
  { "--" .. ("x"):rep(10000), "did you mean" }, { "--\255", "did you mean" },
  { "---", "unrecognized option '---'" }, { "--=", "unrecognized option '--'" },
  { "--help=1", "'--help' takes no value" }, { "--check=", "'--check' takes no value" },
  { "--summary=xml", "'text' or 'json', not 'xml'" }, { "--summary=", "'text' or 'json', not ''" },
  { "--color", "--color auto, always or never" }, { "--color=red", "'auto', 'always' or 'never', not 'red'" },
  { "--follow=1", "'--follow' takes no value" },
  { "--events", "--events FILE" }, { "--events=", "--events FILE" },
  { "--graph", "--graph FILE" }, { "--graph=", "--graph FILE" }, { "--graph=x.png", ".dot, .mmd or .svg" },
  { "--graph=.dot", ".dot, .mmd or .svg" }, { "--workers", "--workers N" },
  { "--workers=", "--workers N" }, { "--workers=0", "not '0'" }, { "--workers=-1", "not '-1'" },
  { "--workers=+1", "not '+1'" }, { "--workers=x", "not 'x'" }, { "--workers=1e3", "not '1e3'" },
  { "--grace", "--grace S" }, { "--grace=", "--grace S" }, { "--grace=-1", "not '-1'" },
  { "--grace=nan", "not 'nan'" }, { "--grace=1.2.3", "not '1.2.3'" }, { "--grace=1e3", "not '1e3'" },
  { "--workers=99999999999999999999", "from 1 to 1024" },
  { "--memory-limit", "--memory-limit 512M" }, { "--memory-limit=100", "not '100'" },
  { "--memory-limit=1K", "'--memory-limit' 1K is too small" },
  { "--time-limit=0", "not '0'" }, { "--time-limit=inf", "not 'inf'" }, { "--cpu-limit=1.5", "not '1.5'" },
  { "--cpu-limit=0", "not '0'" }, { "--open-files=19", "at least 20, not '19'" },
  { "--sandbox=lax", "or 'strict'" }, { "--allow-net", "belongs to '--sandbox'" },
  { "--allow-read=/", "belongs to '--sandbox'" }, { "--allow-read=", "--allow-read=PATH" },
  { "--allow-write=a,,b", "one is empty" }, { "--allow-env=A=B", "without values" },
  { "--allow-run=ls", "takes no value" },
} do
  result = host.run(host.binary, { case[1] })
  check.equal(result.status, 2, case[1])
  check.equal(result.stdout, "")
  check.contains(result.stderr, case[2])
  check.equal(select(2, result.stderr:gsub("\n", "")), 1, "lines of " .. case[1])
end
-- Nothing is run when there is a wrong one, wherever it stands.
result = host.run(host.binary, { "-e", "print(1)", "--nope" })
check.equal(result.status, 2)
check.equal(result.stdout, "")

-- They stand among the others, and are part of `arg`.
result = host.run(host.binary, {
  "--workers", "2", "-e", "x = 1", "--no-progress", "--workers=3", "-", "--not-an-option" },
  { stdin = "print(x, arg[0], arg[-1], ...)" })
check.equal(result.stderr, "")
check.equal(result.stdout, "1\t-\t--workers=3\t--not-an-option\n")

-- --annotations writes files for LuaLS into a folder, which it makes, and does nothing else.
local parent = os.tmpname()
os.remove(parent)
local folder = parent .. "/new"
result = host.run(host.binary, { "--annotations", folder, "-e", "print 'not run'" })
check.same({ result.status, result.stdout, result.stderr }, { 0, "", "" })
for _, name in ipairs { "flow", "flow.testing" } do
  local path = ("%s/%s.d.lua"):format(folder, name)
  assert(assert(io.open(path)):read "l" == "---@meta " .. name)
  os.remove(path)
end
check.equal(host.run("rm", { "-r", parent }).status, 0)
result = host.run(host.binary, { "--annotations", "/dev/null/none" })
check.equal(result.status, 1)
check.contains(result.stderr, "can't make folder '/dev/null/none': Not a directory")
result = host.run(host.binary, { "--annotations" })
check.equal(result.status, 2)
check.contains(result.stderr, "option '--annotations' needs a folder: --annotations DIR")
