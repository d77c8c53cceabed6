-- run: $DIR
--
-- Sums up orders by country: extracts them from a CSV file, which may be larger than the memory,
-- and loads the sums into an SQLite database (Debian: lua-sql-sqlite3). Rows that are wrong go into
-- another file with their reasons, and keep no others from being loaded.
--
--   scripts/flowlua examples/etl.lua FOLDER
local flow = require "flow"
local csv, fs, json = flow.csv, flow.fs, flow.json

local here = arg[0]:match "^(.*)/" or "."
local folder = arg[1] or error("usage: etl.lua FOLDER", 0)

local CustomersOp = flow.op("CustomersOp", {
  gives = { countries = "table" },
  run = function(ctx)
    local countries = {}
    local function skip(problem) ctx:log("line", problem.line, "is left out:", problem.message) end
    for customer in json.lines({ path = here .. "/etl/customers.jsonl" }, { on_error = skip }) do
      countries[customer.id] = customer.country
    end
    ctx:set("countries", countries)
  end,
})

local ExtractOp = flow.op("ExtractOp", {
  doc = "Reads orders as fast as the others take them.",
  needs = { countries = "table" },
  gives = { orders = "stream<table>", rejects = "stream<table>" },
  run = function(ctx)
    local function reject(problem)
      ctx:emit("rejects", { text = problem.text, reason = problem.message })
    end
    local options = { types = { customer = "integer", amount = "number" }, on_error = reject }
    for order in csv.rows({ path = here .. "/etl/orders.csv" }, options) do
      order.country = ctx:get("countries")[order.customer]
      if order.country then
        ctx:emit("orders", order)
      else
        reject { text = order.id, message = "no customer " .. order.customer }
      end
    end
  end,
})

local SumOp = flow.op("SumOp", {
  needs = { orders = "stream<table>" },
  gives = { sums = "table" },
  run = function(ctx)
    local sums = {}
    for order in ctx:get "orders" do
      sums[order.country] = (sums[order.country] or 0) + order.amount
    end
    ctx:set("sums", sums)
  end,
})

local RejectOp = flow.op("RejectOp", {
  needs = { rejects = "stream<table>" },
  run = function(ctx)
    local file <close> = assert(io.open(folder .. "/rejects.jsonl", "w"))
    for row in ctx:get "rejects" do file:write(json.encode(row), "\n") end
  end,
})

local LoadOp = flow.op("LoadOp", {
  doc = "Replaces the database: nobody sees a part of it.",
  needs = { sums = "table" },
  thread = "worker",
  run = function(ctx)
    local environment = require("luasql.sqlite3").sqlite3()
    local db = assert(environment:connect(folder .. "/new.db"))
    assert(db:execute "CREATE TABLE sums (country PRIMARY KEY, amount)")
    for country, amount in pairs(ctx:get "sums") do
      local values = ("('%s', %.2f)"):format(db:escape(country), amount)
      assert(db:execute("INSERT INTO sums VALUES " .. values))
    end
    db:close()
    environment:close()
    fs.rename(folder .. "/new.db", folder .. "/sums.db")
  end,
})

local run = flow.graph("etl")
  :add(CustomersOp)
  :add(ExtractOp)
  :add(SumOp)
  :add(RejectOp)
  :add(LoadOp)
  :run()
if not run.ok then error(tostring(run.error), 0) end

print(("DE %.2f EUR, FR %.2f EUR"):format(run.data.sums.DE, run.data.sums.FR))
io.write(fs.read(folder .. "/rejects.jsonl"))
