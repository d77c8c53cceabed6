-- Which pages are slow, and which fail? The lines of a log are parsed in chunks, one a time on each
-- core: a group of a CPU-bound op.
--
--   scripts/flowlua examples/access_log.lua [LOG]
local flow = require "flow"

-- A log of a server that isn't there, always the same.
local function sample(count)
  local pages = { "/", "/about", "/search", "/login", "/cart" }
  local lines, number = {}, 1
  for i = 1, count do
    number = (number * 48271) % 0x7fffffff
    local page = pages[number % #pages + 1]
    local status = number % 50 == 0 and 500 or number % 20 == 0 and 404 or 200
    local time = number % 90 + (page == "/search" and 400 or 0)
    lines[i] = ("10.0.0.%d GET %s %d %dms"):format(number % 256, page, status, time)
  end
  return table.concat(lines, "\n") .. "\n"
end

local SplitOp = flow.op("SplitOp", {
  doc = "Cuts a text at line ends, into chunks of about 64 kB.",
  needs = { text = "string" },
  gives = { chunks = "string[]" },
  run = function(ctx)
    local text, chunks, position = ctx:get "text", {}, 1
    while position <= #text do
      local stop = text:find("\n", position + 65536, true) or #text
      chunks[#chunks + 1] = text:sub(position, stop)
      position = stop + 1
    end
    ctx:set("chunks", chunks)
  end,
})

local ParseOp = flow.op("ParseOp", {
  doc = "Counts the requests, failures and milliseconds of each page.",
  needs = { chunk = "string" },
  gives = { pages = "table" },
  thread = "worker", -- in a Lua state of its own, on another core
  run = function(ctx)
    local pages = {}
    for page, status, time in ctx:get("chunk"):gmatch("GET (%S+) (%d+) (%d+)ms") do
      local known = pages[page] or { requests = 0, failures = 0, time = 0 }
      known.requests = known.requests + 1
      known.failures = known.failures + (tonumber(status) >= 500 and 1 or 0)
      known.time = known.time + tonumber(time)
      pages[page] = known
    end
    ctx:set("pages", pages)
  end,
})

local MergeOp = flow.op("MergeOp", function(ctx)
  local total, names = {}, {}
  for _, pages in ipairs(ctx:get("counts", "table[]")) do
    for page, counts in pairs(pages) do
      if not total[page] then names[#names + 1] = page end
      total[page] = total[page] or { requests = 0, failures = 0, time = 0 }
      for key, count in pairs(counts) do total[page][key] = total[page][key] + count end
    end
  end
  table.sort(names, function(a, b) return total[a].time > total[b].time end)
  for _, page in ipairs(names) do
    local counts = total[page]
    ctx:log(("%-8s %6d requests %4d failures %4d ms"):format(
      page, counts.requests, counts.failures, counts.time // counts.requests))
  end
end)

local file = arg[1] and assert(io.open(arg[1], "rb"))
local run = flow.new("access log")
  :add(SplitOp)
  :add_grouped(ParseOp, { input = "chunks", output = "counts", max_concurrent = 2 })
  :add(MergeOp)
  :run { text = file and file:read "a" or sample(20000) }
if not run.ok then error(tostring(run.error), 0) end
for _, event in ipairs(run:events()) do
  if event.kind == "log" then print(event.message) end
end
