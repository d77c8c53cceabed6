-- The option --events appends each event of all runs to a file as a line of JSON, as it happens.
local flow, check, host = require "flow", require "check", require "host"
local fs, json = require "flow.fs", flow.json
local folder <close> = setmetatable({ path = fs.temp_dir() }, {
  __close = function(self) fs.remove(self.path, { recursive = true }) end,
})
local file = folder.path .. "/events.json"

-- The records of the file, which has whole lines only, unless its process was killed; it is removed.
local function records(path, was_killed)
  local text, list = fs.read(path or file), {}
  check.equal(was_killed or text == "" or text:sub(-1) == "\n", true, "whole lines")
  for line in text:gmatch "([^\n]*)\n" do list[#list + 1] = json.decode(line) end
  fs.remove(path or file)
  return list
end

local function run(text, options)
  options = options or {}
  options.before = options.before or { "--events", file }
  return host.script("local flow = require 'flow'\n" .. text, {}, options)
end

-- The lines of a run are its events; the first one has its name and start, the last one its outcome.
local result = run [[
  local names = { 'a"b', "two\nlines\27[31m", "\u{202E}gnp", "no \xff UTF-8", ("x"):rep(10000) }
  local ItemOp = flow.op("ItemOp", { thread = "worker", needs = { name = "string" }, run = function(ctx)
    ctx:log("name: " .. ctx:get "name")
    if ctx.index == 2 then error("second", 0) end
  end })
  local ChildOp = flow.op("ChildOp", function(ctx) ctx:set("k", 1) ctx:set("k", 2) ctx:progress(1, 4) end)
  local run = flow.new("all " .. names[2]):add(flow.op(names[1], function(ctx)
    ChildOp:run()
    if ctx.attempt == 1 then error { message = "again" } end
  end):with { retry = 2 })
    :add_grouped(ItemOp, { input = "names", label = function(name) return name end, allow_failure = true,
      max_concurrent = 1 })
    :run { names = names }
  print(flow.json.encode(run:events(), { invalid = "replace" }))
  print(flow.new("empty"):run():events()[1])
  assert(not flow.op("BadOp", function() error("bad", 0) end):run().ok)
]]
check.equal(result.stderr, "")
check.equal(result.status, 0)
local runs, order, outer = {}, {}, nil
for _, record in ipairs(records()) do
  if record.kind == "run" then
    runs[record.run] = { first = record, events = {} }
    order[#order + 1] = runs[record.run]
  elseif record.kind == "end" then
    check.equal(runs[record.run].last, nil)
    runs[record.run].last = record
  else
    check.equal(runs[record.run].last, nil)
    table.insert(runs[record.run].events, record)
  end
end
local function mended(events)
  for _, event in ipairs(events) do
    for key, value in pairs(event) do
      if math.type(value) == "integer" and (key == "time" or key == "queued") then event[key] = value + 0.0 end
    end
  end
  return events
end
local expected = json.decode(result.stdout:match "^[^\n]*")
check.equal(#order, 5)
check.equal(order[1].first.name, "all two\nlines\27[31m")
check.equal(math.abs(order[1].first.started - os.time()) < 1000, true, "start")
check.same(mended(order[1].events), mended(expected))
check.equal(order[1].last.state, "succeeded")
for _, event in ipairs(expected) do
  if event.op == "ChildOp" and event.kind == "start" then outer = outer or event end
end
check.equal(order[2].first.name, "ChildOp")
check.equal(order[2].first.outer_run, order[1].first.run)
check.equal(order[2].first.outer_id, outer.id)
check.equal(#order[2].events, 5)
check.equal(order[4].first.name, "empty")
check.equal(#order[4].events, 0)
check.equal(order[4].last.state, "succeeded")
check.equal(order[5].last.state, "failed")
check.same(order[5].last.error, { kind = "error", message = "bad", op = "BadOp", path = "BadOp" })

-- Later ones are appended, on lines of their own.
fs.write(file, "{\"cut")
run "flow.new('one'):run()"
run "flow.new('two'):run() os.exit(3)"
local text = fs.read(file)
check.contains(text, '{"cut\n{"kind":"run"', '"name":"one"', '"name":"two"')
fs.write(file, (text:gsub("^[^\n]*\n", "")))
check.equal(#records(), 4)

-- `-` is stdout, whose lines stay whole.
result = run([[
  for i = 1, 3000 do
    print(i)
    if i % 1000 == 0 then flow.op("LogOp", function(ctx) ctx:log(i) end):run() end
  end
]], { before = { "--events", "-" } })
local numbers, events = 0, 0
for line in result.stdout:gmatch "[^\n]*" do
  if line:find "^{" then
    events = events + 1
    json.decode(line)
  elseif line ~= "" then
    numbers = numbers + 1
    check.equal(line, tostring(numbers))
  end
end
check.equal(numbers, 3000)
check.equal(events, 15)

-- A script that is killed leaves all lines up to a moment before, even while it is busy; only SIGKILL may leave a part of
-- the last one.
local killed = folder.path .. "/killed.lua"
fs.write(killed, [[
  local flow, word = require "flow", ...
  flow.op("BusyOp", function(ctx)
    ctx:log("ready")
    local text = ("x"):rep(5000)
    if word == "waits" then while true do end end
    while true do ctx:log(text) end
  end):run()
]])
for _, word in ipairs { "waits", "logs" } do
  for _, signal in ipairs { "KILL", "TERM" } do
    host.run("bash", { "-c", [[
      "$1" --events "$2" "$3" "$4" & pid=$!
      until grep -q '"message":"ready"' "$2" || ! kill -s 0 $pid; do sleep 0.01; done 2>/dev/null
      kill -s "$5" $pid
      wait $pid
    ]], "bash", host.binary, file, killed, word, signal })
    local list = records(file, signal == "KILL")
    check.equal(list[3].message, "ready")
    -- Events that come faster than a loaded machine writes them are dropped, the end included.
    if signal == "TERM" and word == "waits" then check.equal(list[#list].state, "cancelled") end
  end
end

-- A file that can't be opened is an error before the script runs.
for path, reason in pairs {
  [folder.path .. "/none/x"] = "No such file or directory", [folder.path] = "Is a directory",
} do
  result = run("print(1)", { before = { "--events", path } })
  check.equal(result.status, 2)
  check.equal(result.stdout, "")
  check.contains(result.stderr, ": option '--events' can't write '" .. path .. "': " .. reason .. "\n")
end

-- Neither a full disk nor a pipe without a reader stops a script; the lost events are counted.
result = run("flow.new('f'):run() print 'done'", { before = { "--events", "/dev/full" } })
check.equal(result.stdout, "done\n")
check.equal(result.status, 1)
check.contains(result.stderr, ": 2 events weren't written to '/dev/full': No space left on device\n")
-- (The thread sanitizer writes a file of 512 KiB when it starts.)
result = host.run("bash", { "-c", [[ ulimit -f 600; "$1" --events "$2" -e '
  local flow = require "flow"
  flow.op("LogOp", function(ctx) for n = 1, 100 do ctx:log(n .. ("x"):rep(10000)) end print "done" end):run()'
  ]], "bash", host.binary, file })
check.equal(result.stdout, "done\n")
check.equal(result.status, 1)
local list = records()
check.contains(result.stderr,
  (": %d events weren't written to '%s': File too large\n"):format(104 - #list, file))
assert(#list > 50 and #list < 65, #list)
local pipe = folder.path .. "/pipe"
flow.exec { "mkfifo", pipe }:await()
result = run("flow.new('f'):run() print 'done'", { before = { "--events", pipe } })
check.equal(result.stdout, "done\n")
check.contains(result.stderr, ": 2 events weren't written to '" .. pipe .. "': nothing reads them\n")
result = host.run("bash", { "-c", [[ sleep 100 < "$2" & "$1" --events "$2" -e '
  local flow = require "flow"
  local text = ("x"):rep(1 << 20)
  flow.op("LogOp", function(ctx) for _ = 1, 40 do ctx:log(text) end print "done" end):run()'
  kill %1 ]], "bash", host.binary, pipe })
check.equal(result.stdout, "done\n")
check.contains(result.stderr, "can't write events", "; the rest is dropped\n", " events weren't written to ")
-- A reader gets them.
result = host.run("bash", { "-c", [[ cat "$2" & "$1" --events "$2" -e '
  require "flow".new("f"):run()'; wait ]], "bash", host.binary, pipe })
check.contains(result.stdout, '"name":"f"', '"kind":"end"')

-- No form of a secret is in the file.
local secret = 'pa"ss wörd/12345'
run([[
  local flow, secret = require "flow", os.getenv "SECRET"
  flow.op("SecretOp", { run = function(ctx)
    ctx:log(secret, "in a message", ctx:get "key")
    ctx:set("copy", { text = secret })
    ctx:set("plain", "with " .. secret)
    error("failed with " .. secret)
  end }):run { key = flow.secret(secret), [secret] = 1 }
  flow.new(secret):add_grouped(flow.op("ItemOp", { needs = { x = "any" }, run = function() end }),
    { input = "xs", label = function() return secret end }):run { xs = { 1 } }
]], { environment = { SECRET = secret } })
text = fs.read(file)
check.contains(text, "<redacted>")
check.lacks(text, secret, json.encode(secret):sub(2, -2), "12345", "pa%22ss", "cGEic3Mgd8O2cmQvMTIzNDU")

-- Nothing happens without runs.
fs.remove(file)
check.equal(host.run(host.binary, { "--events", file, "-e", "print(1)" }).stdout, "1\n")
check.equal(#records(), 0)
