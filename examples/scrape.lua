-- Lists what a shop sells, and for how much. Its list has pages; each names the next one. Then the
-- items are fetched, at most 20 a second; a server that asks for more patience gets it.
local flow = require "flow"

local here = arg[0]:match "^(.*)/" or "."
local server <close> =
  flow.exec({ "python3", "-B", here .. "/servers/shop.py" }, { stdin = "pipe" })
local shop = flow.http.client { base = server:lines()(), rate = { 20, per = 1 }, timeout = 10 }

local ReadPageOp = flow.op("ReadPageOp", {
  doc = "Reads a page of the list.",
  needs = { page = "integer" },
  gives = { found = "integer[]", next = "integer?" },
  retry = 3, -- as late as Retry-After says
  run = function(ctx)
    local page = shop("/list?page=" .. ctx:get "page"):await():json()
    ctx:set("found", page.items)
    ctx:set("next", page.next)
  end,
})

local ReadListOp = flow.op("ReadListOp", {
  doc = "Reads pages until one has no next.",
  gives = { ids = "integer[]" },
  run = function(ctx)
    local ids, page = {}, 1
    repeat
      local run = ReadPageOp:start { page = page }
      run:await()
      for _, id in ipairs(run.data.found) do ids[#ids + 1] = id end
      if run.data.next then ctx:log("page", page, "has", #run.data.found, "items") end
      page = run.data.next
    until not page
    ctx:set("ids", ids)
  end,
})

local ReadItemOp = flow.op("ReadItemOp", {
  needs = { id = "integer" },
  gives = { item = "table" },
  retry = 3,
  run = function(ctx) ctx:set("item", shop("/items/" .. ctx:get "id"):await():json()) end,
})

local run = flow.new("scrape")
  :add(ReadListOp)
  :add_grouped(ReadItemOp, {
    input = "ids", output = "items", failures = "failures",
    max_concurrent = 8, allow_failure = true,
  })
  :run()
if not run.ok then error(run.error) end

table.sort(run.data.items, function(a, b) return a.price < b.price end)
for _, item in ipairs(run.data.items) do print(("%-10s %6.2f"):format(item.name, item.price)) end
for _, failure in ipairs(run.data.failures) do
  print(("%-10s %6s"):format("item " .. failure.input, failure.error.status))
end
