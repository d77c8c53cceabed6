-- An op that is executed again because its code has changed says which variable, function or module is another one.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local text = [[
local helper = require "helper"
local budget, ratio, on, name, unset = 2000, 1.5, false, "a secret", nil
local options = { deep = { limit = 7, text = "x" }, list = { 1, 2, 3 } }
local key = flow.secret "k1"
local client = flow.http.client { base = "http://localhost:1", headers = { a = "b" } }
LIMIT = 10
local function verbose() return on, name, unset end
function shout() return "!" end
local function around(op, factor) return flow.wrap(op, function(ctx, run) ctx:set("f", factor) return run() end) end
local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, run = function(ctx)
  ctx:set("n", budget + ratio + options.deep.limit + LIMIT + ctx:get "item")
  ctx:set("t", tostring(verbose()) .. shout() .. options.deep.text .. #options.list .. helper.mark)
  if ctx:get "n" < 0 then client.get(key) require "late" end
end })
local EndOp = flow.op("EndOp", function(ctx) ctx:fail "stop" end)
flow.new("work"):data { list = { 1, 2 } }:add_grouped(ItemOp, { input = "list", max_concurrent = 1 })
  :add(around(flow.op("InnerOp", function() end), 3)):add(EndOp):run()
]]
local place = " (script.lua:16: "
local function plain(text) return (text:gsub("%f[^%s(]%S*/script.lua:", "script.lua:")) end
local cases = {
  { "budget, ratio, on, name, unset = 2000", "budget, ratio, on, name, unset = 4000", "local 'budget' was 2000, is 4000" },
  { "2000, 1.5", "2000, 2.5", "local 'ratio' was 1.5, is 2.5" },
  { "1.5, false", "1.5, true", "local 'on' was false, is true" },
  -- Text may be a secret, so it isn't shown.
  { '"a secret"', '"another"', "local 'name' differs" },
  { '"a secret", nil', '"a secret", 5', "local 'unset' was nil, is 5" },
  { "2000, 1.5", "2001, 1.75", "local 'budget' was 2000, is 2001; local 'ratio' was 1.5, is 1.75" },
  { "2000, 1.5, false", "2001, 1.75, true",
    "local 'budget' was 2000, is 2001; local 'ratio' was 1.5, is 1.75 and 1 more" },
  { "limit = 7", "limit = 8", "local 'options.deep.limit' was 7, is 8" },
  { "limit = 7", "limit = 7, more = 1", "local 'options.deep.more' is new" },
  { 'limit = 7, text = "x"', 'text = "x", limit = 7', nil },
  { "{ 1, 2, 3 }", "{ 1, 2, 4 }", "local 'options.list' differs" },
  { '"k1"', '"k2"', "local 'key' differs" },
  { "localhost:1", "localhost:2", "local 'client' differs" },
  { 'a = "b"', 'a = "c"', "local 'client' differs" },
  { "LIMIT = 10", "LIMIT = 11", "global 'LIMIT' was 10, is 11" },
  { "return on, name, unset", "return on, name or unset", "function 'verbose' differs" },
  { 'return "!"', 'return "?"', "function 'shout' differs" },
  -- The function itself: that its variables differ as well follows from it.
  { "ctx:get \"item\")", "ctx:get \"item\" * 1)", "" },
}
local function try(from, to, module, wanted, count)
  local script = kept.script(text)
  local function write(name, mark)
    flow.fs.write(script.folder .. "/" .. name .. ".lua", ("return { mark = %q }"):format(mark))
  end
  write("helper", "m")
  write("late", "m")
  check.equal(script:run({ "--keep" }).status, 1)
  if module then write(module, "other") else script:edit(from, to) end
  -- `--why` gives the same reason.
  local asked = plain(script:run({ "--why" }).stdout)
  local log, result = script:resume()
  log = plain(log)
  if not wanted then return check.contains(log, "[ItemOp #1] Kept") end
  local reason = wanted == "" and " (script.lua:16)" or place .. wanted
  check.contains(asked, "ItemOp #1 to #2] Again: its code changed" .. reason)
  check.contains(log, "[ItemOp #1] Again: its code changed" .. reason, "[ItemOp #2] Again: its code changed" .. reason)
  check.contains(log, ("r%%w+: %d kept, %d again: "):format(3 - count, count + 1):gsub("%%w%+", log:match ": r(%w+): ")
    .. count .. " code changed" .. reason)
  assert(not log:find("secret", 1, true) and not log:find("k1", 1, true), log)
  check.equal(result.status, 1)
end
for _, case in ipairs(cases) do try(case[1], case[2], nil, case[3], 2) end
try(nil, nil, "helper", "module 'helper' differs", 2)
try(nil, nil, "late", "module 'late' differs", 2)

-- Variables of wrappers have names, too.
local script = kept.script(text)
flow.fs.write(script.folder .. "/helper.lua", "return { mark = 1 }")
script:run { "--keep" }
script:edit("function() end), 3)", "function() end), 4)")
check.contains(plain(script:resume()), "] Again: its code changed (script.lua:15: local 'factor' was 3, is 4)")

-- A store of an earlier version doesn't know, and says what it can.
script = kept.script(text)
flow.fs.write(script.folder .. "/helper.lua", "return { mark = 1 }")
script:run { "--keep" }
flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON", "-c", [[
import sqlite3, sys
tables = "DROP TABLE codes; DROP TABLE messages; DROP TABLE waits;"
tables += "ALTER TABLE records DROP COLUMN why; ALTER TABLE records DROP COLUMN lines;"
sqlite3.connect(sys.argv[1], isolation_level=None).executescript(tables + "PRAGMA user_version = 3")
]], script.folder .. "/.flowlua/store.sqlite" }):await()
script:edit("2000", "4000")
check.contains(plain(script:run({ "--why" }).stdout), "ItemOp #1 to #2] Again: its code changed (script.lua:16)\n")
check.contains(plain(script:resume()), "[ItemOp #1] Again: its code changed (script.lua:16)\n")
check.equal(script:run({ "--verify" }).stdout, "verified 1 run\n")
-- The next process knows.
script:edit("4000", "6000")
check.contains(plain(script:resume()), "[ItemOp #1] Again: its code changed (script.lua:16: local 'budget' was 4000, is 6000)\n")
