-- The option --summary=json:FILE writes the summaries of all runs to a file when the script ends.
local flow, check, host = require "flow", require "check", require "host"
local fs, json = require "flow.fs", flow.json
local folder <close> = setmetatable({ path = fs.temp_dir() }, {
  __close = function(self) fs.remove(self.path, { recursive = true }) end,
})
local file = folder.path .. "/summary"

local function run(text, form, environment)
  fs.write(file, "old")
  local result = host.script("local flow = require 'flow'\n" .. text, {},
    { before = { "--virtual-clock", "--summary=" .. (form or "json") .. ":" .. file }, environment = environment })
  local list = {}
  for line in fs.read(file):gmatch "([^\n]*)\n" do
    list[#list + 1] = form == "text" and line or json.decode(line)
  end
  return list, result, fs.read(file)
end

-- It has wall times, the data, and the fields of a failure.
local list, result, text = run [[
  local FailOp = flow.op("FailOp", function(ctx)
    local deep, top = {}, nil
    top = deep
    for _ = 1, 1000 do deep[1] = {} deep = deep[1] end
    local loop = { 1, text = "loop" }
    loop.self = loop
    ctx:set("data", { text = "t\n\xff", flags = { true, false }, none = {}, hole = { 1, nil, 3 }, [1.5] = 2,
      array = flow.json.array {}, null = flow.json.null, inf = 1 / 0, op = print })
    ctx:set("loop", loop)
    ctx:set("deep", top)
    flow.sleep(2)
    ctx:fail("no luck", { code = 7, retry = false, details = { list = { 1, 2 } } })
  end)
  local run = FailOp:run { n = 12, x = 0.5 }
  print(run.ok)
  flow.new("two"):run()
]]
check.equal(result.stderr, "")
check.equal(result.stdout, "false\n")
check.equal(#list, 2)
local first = list[1]
check.equal(first.run, "FailOp")
check.equal(first.ended - first.started, 2)
check.equal(first.duration, 2)
check.same(first.error, { kind = "error", message = "no luck", op = "FailOp", path = "FailOp",
  fields = { code = 7, retry = false, details = { list = { 1, 2 } } } })
check.equal(first.data.n, 12)
check.equal(first.data.x, 0.5)
local data = first.data.data
check.contains(data.op, "function: ")
check.equal(data.text, "t\n\u{FFFD}")
check.same(data.flags, { true, false })
check.same(data.hole, { ["1"] = 1, ["3"] = 3 })
check.equal(data["1.5"], 2)
check.contains(text, '"null":null', '"inf":null', '"array":[]', '"none":{}')
check.equal(first.data.loop["1"], 1)
check.contains(first.data.loop.self, "text = loop")
local depth, deep = 0, first.data.deep
while type(deep) == "table" do depth, deep = depth + 1, deep[1] end
check.equal(depth, 100)
check.equal(#first.events, 5)
check.equal(list[2].run, "two")
check.same(list[2].data, {})

-- The text is the summaries'; the file is there however the script ends.
local lines = run("io.write(flow.new('one'):run():summary(), flow.new('two'):run():summary())", "text")
check.equal(#lines, 10)
_, result, text = run("io.write(flow.new('one'):run():summary()) os.exit(3)", "text")
check.equal(text, result.stdout)
check.equal(result.status, 3)
list, result = run "flow.op('SlowOp', function() flow.sleep(9) end):start() error 'failed'"
check.equal(list[1].error.kind, "cancelled")
check.equal(result.status, 1)
list = run "flow.op('EndOp', function() os.execute('kill -s TERM ' .. io.open('/proc/self/stat'):read 'n') flow.sleep(9) end):run()"
check.equal(list[1].state, "cancelled")
check.equal(#run "print(1)", 0)

-- A run that hasn't ended at os.exit is shown as far as it has come, in a file and on stderr.
for _, closes in ipairs { "false", "true" } do
  local exits = "flow.new('first'):run() flow.op('ExitOp', function(ctx) ctx:log 'before' os.exit(4, " .. closes .. ") end):run()"
  list, result, text = run(exits)
  check.equal(result.status, 4)
  check.equal(#list, 2)
  check.same({ list[1].run, list[1].state, list[2].run, list[2].state, list[2].ended }, { "first", "succeeded", "ExitOp", "pending" })
  check.contains(text, '"message":"before"')
  lines, result = run(exits, "text")
  check.contains(table.concat(lines, "\n"), "Flow isSuccess: true", "[ExitOp] before")
  result = host.run(host.binary, { "--summary", "-e", "local flow = require 'flow' " .. exits })
  check.contains(result.stderr, "Flow isSuccess: true", "[ExitOp] WillStart", "[ExitOp] before")
end

-- A file that can't be written any more is reported at the end.
local gone = folder.path .. "/gone"
require("flow.fs").mkdir(gone)
result = host.run(host.binary, {
  "--summary=json:" .. gone .. "/x", "-e", "require('flow').fs.remove(arg[1], { recursive = true }) print(1)", "-", gone,
})
check.equal(result.stdout, "1\n")
check.equal(result.status, 1)
check.contains(result.stderr, ": can't write '" .. gone .. "/x': No such file or directory\n")
for option, message in pairs {
  ["--summary=json:"] = "needs a file: --summary=json:FILE", ["--summary=yaml:x"] = "not 'yaml:x'",
} do
  result = host.run(host.binary, { option, "-e", "print(1)" })
  check.equal(result.status, 2)
  check.contains(result.stderr, message)
end

-- No form of a secret is in the file.
local secret = 'pa"ss wörd/12345'
_, result, text = run([[
  local secret = os.getenv "SECRET"
  flow.op("SecretOp", function(ctx)
    ctx:set("copy", { text = secret, [secret] = { "in " .. secret }, box = flow.secret(12345678), number = 12345678 })
    ctx:set("own", ctx:get "key")
    ctx:fail("failed with " .. secret, { field = secret, [secret] = { secret } })
  end):run { key = flow.secret(secret) }
]], "json", { SECRET = secret })
check.contains(text, '"own":"<redacted>"', '"field":"<redacted>"', '"number":"<redacted>"')
check.lacks(text .. result.stderr, secret, json.encode(secret):sub(2, -2), "12345", "pa%22ss", "cGEic3Mgd8O2cmQvMTIzNDU")
