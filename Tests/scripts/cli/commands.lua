-- `flow.main` makes commands of ops: options from their needs, checked before anything runs, with help and hints.
local check, host = require "check", require "host"

local several = [[
local flow = require "flow"
local DeployOp = flow.op("DeployOp", {
  doc = "Deploys a version.\nTo all hosts.",
  needs = {
    version = { "string", "The version to release", values = { "1.1", "1.2" } },
    hosts = "string[]", dry_run = "boolean", count = "integer?", ratio = "number?", name = "string?",
    on_done = "function?", limit = "integer|string?", mark = "boolean?",
  },
  run = function(ctx)
    local keys = { "version", "dry_run", "count", "ratio", "name", "limit", "mark" }
    for _, key in ipairs(keys) do
      if ctx:has(key) then io.write(key, "=", math.type(ctx:get(key)) or type(ctx:get(key)), ":", tostring(ctx:get(key)), " ") end
    end
    print(table.concat(ctx:get "hosts", "|"))
  end,
})
local FailOp = flow.op("FailOp", function(ctx) ctx:fail "on purpose" end)
local BuildSiteOp = flow.op("BuildSiteOp", { needs = { files = "file[]" }, run = function(ctx) print(#ctx:get "files") end })
print "chunk"
flow.main { DeployOp, FailOp, BuildSiteOp, doc = "Releases the shop." }
print "after"
]]
local function run(text, ...)
  local result = host.script(text, { ... })
  return result.status, result.stdout:gsub("^chunk\n", ""), result.stderr
end
local function ends(status, output, ...)
  local got, stdout, stderr = run(several, ...)
  check.equal(got, status, table.concat({ ... }, " ") .. " " .. stderr)
  check.equal(stdout, output, table.concat({ ... }, " "))
end
local function refused(message, ...)
  local got, stdout, stderr = run(several, ...)
  check.equal(got, 2, table.concat({ ... }, " "))
  check.equal(stdout, "")
  check.equal(stderr, "$SCRIPT: " .. message .. "\n")
end

-- Values by their types, in both forms, and lists by repetition.
ends(0, "version=string:1.2 dry_run=boolean:true a|b\nafter\n",
  "deploy", "--version", "1.2", "--hosts", "a", "--hosts=b", "--dry-run")
ends(0, "version=string:1.1 dry_run=boolean:false count=integer:-3 ratio=float:0.5 x\nafter\n",
  "deploy", "--count", "-3", "--ratio=0.5", "--version=1.1", "--hosts", "x")
ends(0, "version=string:1.1 dry_run=boolean:false ratio=integer:2 limit=integer:7 mark=boolean:false x\nafter\n",
  "deploy", "--limit=7", "--version=1.1", "--hosts=x", "--ratio=2", "--no-mark", "--no-dry-run")
ends(0, "version=string:1.1 dry_run=boolean:false limit=string:seven mark=boolean:true x\nafter\n",
  "deploy", "--limit", "seven", "--version=1.1", "--hosts=x", "--mark=true")
ends(0, "version=string:1.1 dry_run=boolean:false name=string:a =\n\xff 'b' a b|\nafter\n",
  "deploy", "--name=a =\n\xff 'b'", "--version=1.1", "--hosts", "a b", "--hosts=")
ends(0, "2\nafter\n", "build-site", "README.md", "--", "LICENSE")

-- Mistakes, before anything runs.
refused("unknown command 'deplyo' (did you mean 'deploy'?)", "deplyo")
refused("unknown command 'x'; there are deploy, fail, build-site", "x")
refused("a command comes before the option '--dry-run'; there are deploy, fail, build-site", "--dry-run")
refused("unknown option '--verison' (did you mean '--version'?)", "deploy", "--verison", "1.2")
refused("unknown option '--on-done'; there are --count, --dry-run, --hosts, --limit, --mark, --name, --ratio, --version, "
  .. "--no-dry-run, --no-mark, --help", "deploy", "--on-done=f")
refused("unknown option '-x'; there are --files, --help", "build-site", "-x")
refused("option '--version': \"1.1\"|\"1.2\" expected, got '1.3'", "deploy", "--version", "1.3")
for _, text in ipairs { "many", "1.5", "0x10", "", "1e3", "99999999999999999999", "1\n2" } do
  refused("option '--count': integer expected, got '" .. text .. "'", "deploy", "--count=" .. text)
end
for _, text in ipairs { "nan", "inf", "1,5", "0x1p4" } do
  refused("option '--ratio': number expected, got '" .. text .. "'", "deploy", "--ratio", text)
end
refused("option '--dry-run': boolean expected, got 'yes'", "deploy", "--dry-run=yes")
refused("option '--no-dry-run' takes no value", "deploy", "--no-dry-run=true")
refused("option '--count' is given twice", "deploy", "--count=1", "--count", "2")
refused("--no-dry-run is given twice", "deploy", "--dry-run", "--no-dry-run")
refused("option '--count' needs a value: --count INTEGER", "deploy", "--count")
refused("option '--count' needs a value: --count INTEGER", "deploy", "--count", "--dry-run")
refused("option '--hosts' is missing: string[]", "deploy", "--version=1.1")
refused("option '--version' is missing: \"1.1\"|\"1.2\"", "deploy", "--hosts=a")
refused("'extra' is too much: there are only options", "deploy", "--hosts=a", "--version=1.1", "extra")
refused("<files>: file (no such file) expected, got 'none'", "build-site", "none")
refused("<files> is missing: file[]", "build-site")

-- Help.
local _, help = run(several, "--help")
check.equal(help, [[
Usage: $SCRIPT COMMAND [OPTIONS]

Releases the shop.

Commands:
  deploy      Deploys a version.
  fail
  build-site

$SCRIPT COMMAND --help describes a command.
]])
local status, list = run(several)
check.equal(status .. list, "0" .. help)
_, help = run(several, "deploy", "--version=1.1", "--help")
check.contains(help, "Usage: $SCRIPT deploy [OPTIONS]\n", "Deploys a version.\nTo all hosts.\n",
  "  --version VALUE ", "  The version to release (1.1, 1.2; required)\n", "--hosts STRING…", "(may be repeated; required)",
  "--dry-run\n", "  --help ", " shows this\n", "Only from Lua: on_done (function?)\n")

-- A failure is reported once, with the status 1.
local failed = host.script(several, { "fail" })
check.equal(failed.status, 1)
check.equal(select(2, failed.stderr:gsub("on purpose", "")), 1)

-- A single op or flow needs no name; data are the defaults.
local single = [[
local flow = require "flow"
local GreetOp = flow.op("GreetOp", { needs = { who = "string", times = "integer", key = "string" },
  run = function(ctx) print(ctx:get "who", ctx:get "times") end })
flow.main(flow.new("greet", "Greets."):needs { who = "string", times = "integer", key = "string" }
  :primary("who"):data { times = 3, key = flow.secret "hidden" }:add(GreetOp))]]
single = single:gsub(', "Greets."', "")
check.same({ run(single, "Ada") }, { 0, "Ada\t3\n", "" })
check.same({ run(single, "--times", "5", "-1") }, { 0, "-1\t5\n", "" })
check.same({ run(single, "--who", "Ada", "Bob") }, { 2, "", "$SCRIPT: 'Bob' is too much: <who> is given already\n" })
check.same({ run(single, "Ada", "--who=Bob") }, { 2, "", "$SCRIPT: option '--who' is given twice\n" })
_, help = run(single, "-h")
check.contains(help, "Usage: $SCRIPT [OPTIONS] <who>\n", "(default: 3)", "(default: <redacted>)")
check.lacks(help, "hidden")

-- A needed value that only Lua can give, and one that it gives.
local only = [[local flow = require "flow"
local AnOp = flow.op("AnOp", { needs = { fn = "function" }, run = function(ctx) ctx:get "fn" () end })
flow.main(%s)]]
check.same({ run(only:format "AnOp") },
  { 2, "", "$SCRIPT: <fn> is function, which only Lua can give: there is no option for it\n" })
check.same({ run(only:format [[flow.new("f"):needs { fn = "function" }:data { fn = function() print "ran" end }:add(AnOp)]]) },
  { 0, "ran\n", "" })

-- A module gets the table back and runs nothing.
local module = os.tmpname()
local file = assert(io.open(module, "w"))
file:write(several)
file:close()
check.same({ run(("local ops = dofile(%q) print(ops)"):format(module)) }, { 0, "after\nnil\n", "" })
check.equal(select(2, run(([[package.preload.release = assert(loadfile(%q))
  package.loaded.release = nil print(type(require "release"))]]):format(module), "deploy")), "after\nboolean\n")
check.contains(select(2, run(([[local flow = require "flow" local AnOp = flow.op("AnOp", print)
  local t = { AnOp } print(coroutine.wrap(function() return flow.main(t) == t end)())]]):format(module))), "true")
os.remove(module)

-- The chunk fails first; arguments that are no words; misuse.
status, list, help = run("error('early', 0) require 'flow'.main {}")
check.equal(status, 1)
check.contains(help, "early")
local flow = require "flow"
local AnOp = flow.op("AnOp", function() end)
local function misuse(what, ...) check.usage(what, "main", "#1", ...) end
misuse(function() flow.main() end, "op expected, got no value")
misuse(function() flow.main {} end, "list of ops expected, got an empty one")
misuse(function() flow.main { AnOp, 1 } end, "element 2: op expected, got number")
misuse(function() flow.main { AnOp, docs = "x" } end, "unknown field 'docs'", "'doc'")
misuse(function() flow.main { AnOp, doc = 1 } end, "field 'doc': string expected, got number")
misuse(function() flow.main { AnOp, flow.op("An", print) } end, "two commands are named 'an'")
misuse(function() flow.main { AnOp, flow.op("-x", print) } end, "a command can't be named '-x'")
local function needs(declared) return function() flow.op("AnOp", { needs = { a = declared }, run = print }) end end
check.usage(needs { "strin" }, "op", "type of 'a'", "strin")
check.usage(needs {}, "op", "'a': { type, text } expected, got a table without a type")
check.usage(needs { "string", 1 }, "op", "'a': { type, text, values = list } expected, got number at 2")
check.usage(needs { "string", values = {} }, "op", "values of 'a': a list with values expected")
check.usage(needs { "string", values = { {} } }, "op", "values of 'a': strings and integers expected, got table")
check.usage(needs(1), "op", "type of 'a': string, function or { type, text } expected, got number")
