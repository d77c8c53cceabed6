-- run: $DIR
--
-- Sums up orders by country: reads them from a CSV file, which may be larger than the memory, while
-- it sums them up, and loads the sums into an SQLite database (Debian: lua-sql-sqlite3). Rows that
-- are wrong go into another file with their reasons, and keep no others from being loaded.
--
--   scripts/flowlua examples/etl.lua FOLDER
local flow = require "flow"

local here = (arg[0]:match "^(.*)/" or ".") .. "/etl/"
local folder = arg[1] or error("usage: etl.lua FOLDER", 0)
local rejects <close> = assert(io.open(folder .. "/rejects.jsonl", "w"))
local function reject(problem)
  rejects:write(flow.json.encode { text = problem.text, reason = problem.message }, "\n")
end

local CustomersOp = flow.op("CustomersOp", {
  gives = { countries = "table" },
  run = function(ctx)
    local countries, types = {}, { id = "integer", country = "string" }
    local source = { path = here .. "customers.jsonl" }
    for row in flow.json.lines(source, { types = types, on_error = reject }) do
      countries[row.id] = row.country
    end
    ctx:set("countries", countries)
  end,
})

local OrdersOp = flow.op("OrdersOp", {
  needs = { countries = "table" },
  gives = { orders = "stream<table>" },
  run = function(ctx)
    local countries, types = ctx:get "countries", { customer = "integer", amount = "number" }
    local source = { path = here .. "orders.csv" }
    for row in flow.csv.rows(source, { types = types, on_error = reject }) do
      row.country = countries[row.customer]
      if row.country then
        ctx:emit("orders", row)
      else
        reject { text = "order " .. row.id, message = "no customer " .. row.customer }
      end
    end
  end,
})

local SumOp = flow.op("SumOp", {
  needs = { orders = "stream<table>" },
  gives = { sums = "table" },
  run = function(ctx)
    local sums = {}
    for row in ctx:get "orders" do sums[row.country] = (sums[row.country] or 0) + row.amount end
    ctx:set("sums", sums)
  end,
})

local LoadOp = flow.op("LoadOp", {
  doc = "Replaces the database: nobody sees a part of it.",
  needs = { sums = "table" },
  thread = "worker",
  run = function(ctx)
    os.remove(folder .. "/new.db")
    local environment = require("luasql.sqlite3").sqlite3()
    local db = assert(environment:connect(folder .. "/new.db"))
    assert(db:execute "CREATE TABLE sums (country PRIMARY KEY, amount)")
    for country, sum in pairs(ctx:get "sums") do
      assert(db:execute(("INSERT INTO sums VALUES ('%s', %.2f)"):format(db:escape(country), sum)))
    end
    db:close()
    environment:close()
    assert(os.rename(folder .. "/new.db", folder .. "/sums.db"))
  end,
})

local run = flow.graph("etl"):add(CustomersOp):add(OrdersOp):add(SumOp):add(LoadOp):run()
if not run.ok then error(tostring(run.error), 0) end
rejects:flush()
print(("DE %.2f EUR, FR %.2f EUR"):format(run.data.sums.DE, run.data.sums.FR))
io.write(flow.fs.read(folder .. "/rejects.jsonl"))
