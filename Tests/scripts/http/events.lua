-- Server-sent events are parsed as the HTML standard says, however their bytes are split.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local function parsed(text, query)
  local url = server:raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" .. text, query)
  local list = {}
  for event in flow.http { url = url, stream = true }:await():events() do
    list[#list + 1] = { event = event.event, data = event.data, id = event.id, retry = event.retry }
  end
  return list
end
local function events(text, expected)
  for _, ending in ipairs { "\n", "\r\n", "\r" } do
    local bytes = text:gsub("\n", ending)
    check.same(parsed(bytes), expected, ("%q"):format(bytes))
    check.same(parsed(bytes, { size = 1 }), expected, ("%q, split"):format(bytes))
  end
end

events("data: one\n\ndata: two\n\n", { { event = "message", data = "one" }, { event = "message", data = "two" } })
-- The examples of the standard.
events("data: This is the first message.\n\ndata: This is the second message, it\ndata: has two lines.\n\n"
  .. "data: This is the third message.\n\n", {
  { event = "message", data = "This is the first message." },
  { event = "message", data = "This is the second message, it\nhas two lines." },
  { event = "message", data = "This is the third message." },
})
events("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n", {
  { event = "add", data = "73857293" }, { event = "remove", data = "2153" },
})
events("data: YHOO\ndata: +2\ndata: 10\n\n", { { event = "message", data = "YHOO\n+2\n10" } })
events(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", {
  { event = "message", data = "first event", id = "1" },
  { event = "message", data = "second event", id = "" },
  { event = "message", data = " third event", id = "" },
})
events("data\n\ndata\ndata\n\ndata:", { { event = "message", data = "" }, { event = "message", data = "\n" } })
events("data:test\n\ndata: test\n\n", { { event = "message", data = "test" }, { event = "message", data = "test" } })
-- An id holds for later events, a type doesn't; an event without data isn't one.
events("id: 7\nevent: a\ndata: x\n\ndata: y\n\nevent: lost\n\ndata: z\n\n", {
  { event = "a", data = "x", id = "7" }, { event = "message", data = "y", id = "7" },
  { event = "message", data = "z", id = "7" },
})
-- retry is a number of milliseconds in digits, and holds for all that follows; fields that nobody knows and comments are skipped.
events("retry: 1500\ndata: a\n\nretry: soon\ndata: b\n\nother: 1\n:\n::\ndata: c\n\n", {
  { event = "message", data = "a", retry = 1.5 }, { event = "message", data = "b", retry = 1.5 },
  { event = "message", data = "c", retry = 1.5 },
})
-- An id with a NUL isn't taken; a byte-order mark at the start isn't text; one later is.
check.same(parsed "id: a\0b\ndata: x\n\n", { { event = "message", data = "x" } })
events("\u{feff}data: x\n\n", { { event = "message", data = "x" } })
events("data: x\n\n\u{feff}data: y\n\n", { { event = "message", data = "x" } })
events("data: \u{feff}ä€😀\n\n", { { event = "message", data = "\u{feff}ä€😀" } })
-- Mixed ends of lines, and a CR LF that is split between two pieces.
check.same(parsed "data: a\rdata: b\ndata: c\r\n\r\n", { { event = "message", data = "a\nb\nc" } })
check.same(parsed("data: a\r\n\r\ndata: b\r\n\r\n", { size = 1, pause = 0.001 }),
  { { event = "message", data = "a" }, { event = "message", data = "b" } })
-- A part that the end of the stream cuts isn't an event.
events("data: whole\n\ndata: cut", { { event = "message", data = "whole" } })
events("data: whole\n\ndata: cut\n", { { event = "message", data = "whole" } })
events("", {})
-- Large ones.
local large = ("x"):rep(500000)
check.equal(parsed("data: " .. large .. "\n\n")[1].data, large)

-- They come as they are sent.
local url = server:raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: now\n\n", { hold = 1 })
for event in flow.http { url = url, stream = true }:await():events() do
  check.equal(event.data, "now")
  break
end

-- An event is collected as a whole, so it has a limit: 64 MiB, or the limit of the whole body.
local response = flow.http { url = server:url("/endless", { part = "line" }), stream = true }:await()
local error = check.raises(function() for _ in response:events() do end end,
  " -> 200: an event has more than 67108864 bytes (max_bytes)")
check.equal(error.kind, "http")
check.equal(error.status, 200)
