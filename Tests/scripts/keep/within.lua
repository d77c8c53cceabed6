-- With --within, or the field of flow.keep, a run that changed last before that is left, and a new one begins.
-- clock: real: the age of a run
local check, host, flow = require "check", require "host", require "flow"

local folder = flow.fs.temp_dir()
local program = [[
  local flow = require "flow"
  %s
  local FetchOp = flow.op("FetchOp", { gives = { rows = "string" }, run = function(ctx)
    print("fetching")
    ctx:set("rows", "the rows")
  end })
  local LoadOp = flow.op("LoadOp", { needs = { rows = "string" }, run = function(ctx)
    if not os.getenv "UP" then ctx:fail "the database is down" end
    print("loading")
  end })
  local run = flow.new("import"):add(FetchOp):add(LoadOp):run()
  if not run.ok then os.exit(1, true) end
]]
flow.fs.write(folder .. "/s.lua", program:format "")
flow.fs.write(folder .. "/own.lua", program:format "flow.keep { resume = true, within = 1 }")
local function run(words, up)
  return host.run("sh", { "-c", ("cd \"$1\" && export %s; exec \"$0\" %s"):format(up and "UP=1" or "DOWN=1", words),
    host.binary, folder })
end
local function first_run(path) return run("--runs " .. path).stdout:match "\n(%S+)" end

for name, words in pairs { s = "--resume --within 1s s.lua", own = "own.lua" } do
  local path = name .. ".lua"
  check.equal(run(words).stdout, "fetching\n")
  -- Of the same night.
  check.equal(run(name == "s" and "--resume --within 1h s.lua" or "--resume --within 1h own.lua", true).stdout, "loading\n")
  check.equal(run(words).stdout, "fetching\n")
  local left = run("--runs " .. path).stdout:match ".*\n(r%w+) [^\n]*\n"
  os.execute "sleep 2.2"
  local why = run("--why " .. (name == "s" and "--within 1s " or "") .. path)
  if name == "s" then check.contains(why.stdout, "FetchOp") end
  local result = run(words, true)
  check.equal(result.stdout, "fetching\nloading\n")
  check.contains(result.stderr, "run " .. left .. " changed last more than ", " ago: a new run begins; --resume=" .. left)
  check.equal(result.status, 0)
  -- It is there all the same.
  check.equal(run("--resume=" .. left .. " " .. path, true).stdout, "loading\n")
  check.equal(first_run(path) ~= nil, true)
end

for words, text in pairs {
  ["--within 1h s.lua"] = "option '--within' belongs to '--resume' without a run",
  ["--resume=r1 --within 1h s.lua"] = "option '--within' belongs to '--resume' without a run",
  ["--resume --within 12 s.lua"] = "option '--within' needs a number with the unit s, m, h, d or w, such as 12h, not '12'",
  ["--resume --within"] = "option '--within' needs an age: --within 12h",
} do
  local result = run(words)
  check.equal(result.status, 2, words)
  check.contains(result.stderr, text)
end
