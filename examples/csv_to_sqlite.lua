-- run: examples/orders.csv
--
-- Imports a CSV file into an SQLite database, then asks the database who ordered for how much. The
-- database's library (Debian: lua-sql-sqlite3) blocks its thread, so both ops run on a worker. The
-- file is read as a stream, row by row: it may be larger than the memory.
--
--   scripts/flowlua examples/csv_to_sqlite.lua ORDERS.csv
local flow = require "flow"

-- A connection to a database that is closed when the op ends, however it ends.
local function open(ctx)
  local environment = require("luasql.sqlite3").sqlite3()
  local db = assert(environment:connect(ctx:get "database"))
  ctx:defer(function()
    db:close()
    environment:close()
  end)
  return db
end

local ImportOp = flow.op("ImportOp", {
  doc = "Writes all rows, or none, into the table `orders`.",
  needs = { csv = "string", database = "string" },
  gives = { rows = "integer" },
  thread = "worker",
  run = function(ctx)
    local db, rows = open(ctx), 0
    assert(db:execute "CREATE TABLE orders (customer, article, amount INTEGER, price REAL)")
    db:setautocommit(false)
    local types = { amount = "integer", price = "number" }
    for row in flow.csv.rows({ path = ctx:get "csv" }, { types = types }) do
      assert(db:execute(("INSERT INTO orders VALUES ('%s', '%s', %d, %.17g)"):format(
        db:escape(row.customer), db:escape(row.article), row.amount, row.price)))
      rows = rows + 1
    end
    db:commit()
    ctx:set("rows", rows)
  end,
})

local ReportOp = flow.op("ReportOp", {
  needs = { database = "string" },
  gives = { report = "table" },
  thread = "worker",
  run = function(ctx)
    local cursor = assert(open(ctx):execute [[
      SELECT customer, count(*) AS orders, sum(amount * price) AS total
      FROM orders GROUP BY customer ORDER BY total DESC]])
    local report = {}
    for row in function() return cursor:fetch({}, "a") end do report[#report + 1] = row end
    cursor:close()
    ctx:set("report", report)
  end,
})

local run = flow.new("orders")
  :data { csv = arg[1], database = flow.fs.temp_dir() .. "/orders.db" }
  :add(ImportOp)
  :add(ReportOp)
  :run()
if not run.ok then error(tostring(run.error), 0) end

print(run.data.rows .. " orders")
for _, row in ipairs(run.data.report) do
  print(("%-8s %d %7.2f"):format(row.customer, row.orders, row.total))
end
