-- run: LOAD_KILL=15 $DIR
-- run: $DIR
--
-- Extracts 200,000 sales from a CSV file, transforms them in workers, and loads them into an SQLite
-- database (Debian: lua-sql-sqlite3). The run is kept: if the process is killed, the next one
-- continues, and no sale is loaded twice.
--
--   LOAD_KILL=15 scripts/flowlua examples/bulk_load.lua FOLDER    # as if the power failed
--   scripts/flowlua examples/bulk_load.lua FOLDER                 # continues
--   scripts/flowlua --follow examples/bulk_load.lua FOLDER        # nothing is left: a new run
local flow = require "flow"
local fs = flow.fs

local folder = arg[1] or error("usage: bulk_load.lua FOLDER", 0)
fs.mkdir(folder)
flow.keep { store = folder .. "/.flowlua", resume = true }

local ROWS, CHUNKS = 200000, 50
local COLUMNS = { "id", "day", "country", "price" }

local ExtractOp = flow.op("ExtractOp", {
  doc = "Stands for a download: a file of sales, the same each time.",
  needs = { csv = "string" },
  thread = "worker",
  run = function(ctx)
    local countries, seed = { "de", "FR", "it ", "PL" }, 1
    local rows = { "id,day,country,price\n" }
    for id = 1, ROWS do
      seed = seed * 16807 % 2147483647
      rows[id + 1] = ("%d,%d,%s,%d.%02d EUR\n"):format(
        id, seed % 365, countries[seed % 4 + 1], seed % 90, seed % 100)
    end
    fs.write(ctx:get "csv", table.concat(rows)) -- the whole file, or none
  end,
})

local DivideOp = flow.op("DivideOp", {
  doc = "Finds where the chunks of the file begin and end. No field has a line break.",
  needs = { csv = "string" },
  gives = { chunks = "table[]" },
  run = function(ctx)
    local file <close> = assert(io.open(ctx:get "csv"))
    local size, chunks = file:seek "end", {}
    file:seek "set"
    local first = #file:read "L" -- after the names of the columns
    for number = 1, CHUNKS do
      local last = math.max(first, size * number // CHUNKS)
      file:seek("set", last)
      if last < size then last = last + #file:read "L" end
      chunks[number] = { first = first, size = last - first }
      first = last
    end
    ctx:set("chunks", chunks)
  end,
})

-- The row of the database for a row of the file.
local function transform(row, chunk)
  local euros, cents = row.price:match "^(%d+)%.(%d%d) EUR$"
  return ("(%d,%d,%d,'%s',%d)"):format(
    chunk, row.id, row.day // 31 + 1, row.country:match("%a+"):upper(), euros * 100 + cents)
end

-- A connection to a database that is closed when the op ends, however it ends.
local function open(ctx, path)
  local environment = require("luasql.sqlite3").sqlite3()
  local db = assert(environment:connect(path, 60000)) -- waits up to 60,000 ms for others
  ctx:defer(function()
    db:close()
    environment:close()
  end)
  return db
end

local CreateOp = flow.op("CreateOp", {
  doc = "Makes a database for this run: the key is the same in each process that continues it.",
  needs = { folder = "string" },
  gives = { part = "string" },
  thread = "worker",
  run = function(ctx)
    local part = ctx:get "folder" .. "/sales-" .. ctx.key .. ".db"
    local db = open(ctx, part)
    assert(db:execute [[
      CREATE TABLE IF NOT EXISTS sales (chunk, id, month, country, cents, PRIMARY KEY (chunk, id))
      WITHOUT ROWID]])
    assert(db:execute "CREATE TABLE IF NOT EXISTS chunks (chunk PRIMARY KEY, process)")
    ctx:set("part", part)
  end,
})

local LoadOp = flow.op("LoadOp", {
  doc = "Loads one chunk in one transaction, which replaces what was loaded of it before.",
  needs = { csv = "string", part = "string", chunk = "table" },
  thread = "worker",
  run = function(ctx)
    local chunk = ctx:get "chunk"
    local file <close> = assert(io.open(ctx:get "csv"))
    file:seek("set", chunk.first)
    local types, rows = { id = "integer", day = "integer" }, {}
    for row in flow.csv.rows(file:read(chunk.size), { header = COLUMNS, types = types }) do
      rows[#rows + 1] = transform(row, chunk.first)
    end

    local db = open(ctx, ctx:get "part")
    assert(db:execute "BEGIN IMMEDIATE")
    assert(db:execute("DELETE FROM sales WHERE chunk = " .. chunk.first))
    for first = 1, #rows, 500 do
      local values = table.concat(rows, ",", first, math.min(first + 499, #rows))
      assert(db:execute("INSERT INTO sales VALUES " .. values))
    end
    local stat <close> = io.open "/proc/self/stat"
    assert(db:execute(("REPLACE INTO chunks VALUES (%d, %d)"):format(chunk.first, stat:read "n")))
    assert(db:execute "COMMIT")
    -- The worst moment: the database has the chunk, but the store doesn't know it.
    if ctx.index == tonumber(os.getenv "LOAD_KILL") then os.execute "kill -9 $PPID" end
  end,
})

local PublishOp = flow.op("PublishOp", {
  doc = "Replaces the database of the last run; nobody sees a part of this one.",
  needs = { part = "string", database = "string" },
  run = function(ctx)
    -- A process may have been killed right after this.
    if fs.exists(ctx:get "part") then fs.rename(ctx:get "part", ctx:get "database") end
  end,
})

local ReportOp = flow.op("ReportOp", {
  needs = { database = "string" },
  gives = { report = "table[]", processes = "integer" },
  thread = "worker",
  run = function(ctx)
    local db, report = open(ctx, ctx:get "database"), {}
    local cursor = assert(db:execute [[
      SELECT country, count(DISTINCT id) AS different, count(*) AS sales, sum(cents) AS cents
      FROM sales GROUP BY country ORDER BY country]])
    for row in function() return cursor:fetch({}, "a") end do report[#report + 1] = row end
    cursor:close()
    cursor = assert(db:execute "SELECT count(DISTINCT process) FROM chunks")
    ctx:set("processes", cursor:fetch())
    cursor:close()
    ctx:set("report", report)
  end,
})

local run = flow.new("load")
  :data { folder = folder, csv = folder .. "/sales.csv", database = folder .. "/sales.db" }
  :add(ExtractOp)
  :add(DivideOp)
  :add(CreateOp)
  :add_grouped(LoadOp, { input = "chunks", as = "chunk", max_concurrent = 4 })
  :add(PublishOp)
  :add(ReportOp)
  :run()
if not run.ok then error(tostring(run.error), 0) end

for _, row in ipairs(run.data.report) do
  assert(row.sales == row.different, "a sale was loaded twice")
  print(("%s  %d sales  %.2f EUR"):format(row.country, row.sales, row.cents / 100))
end
print(("%d chunks, loaded by %d processes"):format(#run.data.chunks, run.data.processes))
