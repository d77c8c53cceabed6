-- Ops of a newsletter: who gets it, one mail each, a report. newsletter_test.lua tests them.
local flow = require "flow"

local newsletter = {}

newsletter.LoadSubscribersOp = flow.op("LoadSubscribersOp", {
  doc = "Asks the server who gets it.",
  needs = { list = "string" },
  gives = { subscribers = "string[]" },
  timeout = 30,
  run = function(ctx)
    local found = flow.exec({ "curl", "--fail", "https://example.org/" .. ctx:get "list" }):await()
    local subscribers = {}
    for address in found.stdout:gmatch("[^\n]+") do subscribers[#subscribers + 1] = address end
    ctx:set("subscribers", subscribers)
  end,
})

newsletter.SendMailOp = flow.op("SendMailOp", {
  doc = "Sends one mail; a server that is busy is asked again, a minute later and then two.",
  needs = { address = "string" },
  gives = { receipt = "string" },
  retry = { attempts = 3, delay = 60, factor = 2 },
  run = function(ctx)
    local sent = flow.exec { "sendmail", ctx:get "address" }:await()
    ctx:set("receipt", sent.stdout)
  end,
})

newsletter.ReportOp = flow.op("ReportOp", {
  needs = { receipts = "string[]", unreachable = "table[]" },
  gives = { report = "string" },
  run = function(ctx)
    ctx:set("report", ("%d sent, %d unreachable"):format(
      #ctx:get "receipts", #ctx:get "unreachable"))
  end,
})

newsletter.flow = flow.new("newsletter")
  :needs { list = "string" }
  :add(newsletter.LoadSubscribersOp)
  :add_grouped(newsletter.SendMailOp, {
    input = "subscribers", output = "receipts", failures = "unreachable",
    allow_failure = true, allow_empty = true,
  })
  :add(newsletter.ReportOp)

return newsletter
