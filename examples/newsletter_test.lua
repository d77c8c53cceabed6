-- How to test ops of one's own: no mail is sent, no server is asked, and minutes take no time.
-- Execute it by `flowlua --test examples`.
local testing = require "flow.testing"
local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/lib/?.lua;" .. package.path
local newsletter = require "newsletter"

local tests = {}

-- An op alone: data goes in, data comes out.
function tests.the_report_counts(t)
  local run = testing.run(newsletter.ReportOp, {
    data = { receipts = { "a", "b" }, unreachable = {} },
  })
  t:equal(run.error, nil)
  t:equal(run.data.report, "2 sent, 0 unreachable")
end

function tests.what_is_missing_is_named(t)
  local run = testing.run(newsletter.flow)
  t:equal(run.error.kind, "insufficient_input")
  assert(run.error.message:find "list")
end

-- A flow whose ops at the edges are replaced: by data that the op gives, or by a function. The
-- retries are those of the real op.
function tests.a_busy_server_is_asked_again(t)
  local calls = 0
  local run = testing.run(newsletter.flow, {
    data = { list = "weekly" },
    replace = {
      LoadSubscribersOp = { subscribers = { "ada@example.org", "gone@example.org" } },
      SendMailOp = function(ctx)
        calls = calls + 1
        if ctx:get "address" == "gone@example.org" then error("no such mailbox", 0) end
        if ctx.attempt == 1 then error("busy", 0) end
        ctx:set("receipt", "receipt of " .. ctx:get "address")
      end,
    },
  })
  t:equal(run.error, nil)
  t:equal(run.data.report, "1 sent, 1 unreachable")
  t:equal(run.data.unreachable[1].error.message, "no such mailbox")
  t:equal(calls, 2 + 3)
  t:equal(run.duration, 60 + 120) -- virtual seconds
end

-- The steps, in their order.
function tests.mails_wait_for_the_list(t)
  local run = testing.run(newsletter.flow, {
    data = { list = "weekly" },
    replace = { LoadSubscribersOp = { subscribers = {} } },
  })
  t:lines(run, { "[LoadSubscribersOp] DidFinish", "[ReportOp] WillStart", "[ReportOp] DidFinish" })
end

return tests
