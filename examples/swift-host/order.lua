-- The program runs this for an order: it decides what happens, the ops are the program's.
local flow = require "flow"
local StockOp, ReserveOp = flow.ops.StockOp, flow.ops.ReserveOp

local OrderLineOp = flow.new("OrderLineOp")
  :needs { article = "string" }
  :add(StockOp)
  :case(function(data) return data.stock >= data.amount end)
    :add(ReserveOp("shop"))
  :otherwise()
    :add(flow.op("BackOrderOp", function(ctx)
      ctx:log(("only %d of %s in stock"):format(ctx:get("stock"), ctx:get("article")))
      ctx:set("reservation", "back order of " .. ctx:get("article"))
    end))
  :with { primary_input = "article", primary_output = "reservation" }

local order = flow.new("order")
  :add_grouped(OrderLineOp, { input = "articles", output = "reservations", max_concurrent = 1 })

-- The program gets the run, and with it the data and the log.
return order:start { articles = { "apples", "pears", "quinces" }, amount = 3 }
