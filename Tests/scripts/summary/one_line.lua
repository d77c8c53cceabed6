-- Each line of a summary is one event: control characters in names and texts are escaped, and events keep them.
local flow, check, host = require "flow", require "check", require "host"
local FAKE = "x\n1:00:00 AM [FakeOp] WillStart"
local SHOWN = "x\\n1:00:00 AM [FakeOp] WillStart"
local ItemOp = flow.op("ItemOp", { needs = { item = "string" }, run = function(ctx) ctx:fail(FAKE) end })
local LogOp = flow.op("Log\nOp", function(ctx)
  ctx:log(FAKE)
  ctx:log "a\tb\r\27[31m\u{2028}\u{202E}é\0"
  ctx:set("text\n", FAKE)
  ctx:set("text\n", { FAKE })
  flow.op("Inner\nOp", function(inner) inner:log(FAKE) end):run()
end)
local run = flow.new("one\nflow"):add(LogOp):add_grouped(ItemOp, { input = "items", allow_failure = true })
  :add(flow.op("FailOp", { retry = { attempts = 2, delay = 1 }, run = function(ctx) ctx:fail(FAKE) end }))
  :start { items = { FAKE } }
run:wait()
check.equal(run.error.message, FAKE)
local summary = run:summary()
check.lacks(summary, "\n1:00:00 AM", "\r", "\27", "\0", "\u{2028}", "\u{202E}")
check.contains(summary, "[Log\\nOp] " .. SHOWN .. "\n", "[Log\\nOp] a\\tb\\r\\x1B[31m\\u{2028}\\u{202E}é\\x00\n",
  "[DataBucket] add for text\\n: " .. SHOWN .. "\n", "[DataBucket] replace for text\\n: " .. SHOWN .. " -> {" .. SHOWN .. "}\n",
  "\nitems: {" .. SHOWN .. "}\n", "[Log\\nOp/Inner\\nOp] " .. SHOWN .. "\n", "[ItemOp #1] DidFinish: withError: " .. SHOWN .. "\n",
  "[FailOp] Retry 2/2 in 1s: " .. SHOWN .. "\n", "[FailOp] DidFinish: withError: " .. SHOWN .. "\n")
check.contains(run:summary { full = true, time = "iso", durations = true }, "[FailOp] DidFinish: withError: " .. SHOWN .. " (")
local messages = {}
for _, event in ipairs(run:events()) do if event.kind == "log" then messages[#messages + 1] = event.message end end
check.equal(messages[1], FAKE)

-- Likewise as they happen.
local result = host.script([[
  local flow = require "flow"
  flow.op("LogOp", function(ctx) ctx:log("a\nb") ctx:set("x", "c\nd") end):run()]], {}, { before = { "--follow" } })
check.contains(result.stderr, "[LogOp] a\\nb\n", "add for x: c\\nd\n", "\nx: c\\nd\n")
check.equal(select(2, result.stderr:gsub("\n", "")), 10)
