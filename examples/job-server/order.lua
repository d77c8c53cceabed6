-- A job: an order of a customer.
-- luacheck: read globals Account
local flow = require "flow"
local order = ...

local basket = flow.new("order")
  :add_grouped(flow.ops.ReserveOp,
    { input = "lines", output = "reservations", max_concurrent = 4 })
  :add(flow.ops.PriceOp)
  :add(flow.ops.InvoiceOp)
  :add(flow.ops.NotifyOp(order.customer))

local data = basket:start({ lines = order.lines }):await()
local account = Account(order.customer)
account:charge(data.cents)
print(("%s has %d cents left"):format(account.owner, account.balance))
return { reservations = data.reservations, invoice = data.invoice, cents = data.cents }
