-- A browser shows the page of a timeline without an error; the page obeys its address and loads nothing else.
-- clock: real: a browser is outside
local flow, check, host = require "flow", require "check", require "host"
local scratch = require "scratch"

local folder, _ <close> = scratch.folder()
local file = folder .. "/page.html"
local source = [[
  local flow = require "flow"
  local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, retry = { attempts = 2, delay = 0.1 },
    run = function(ctx)
      flow.sleep(0.1)
      if ctx.index == 3 and ctx.attempt == 1 then ctx:fail "</script><b>refused</b>" end
      if ctx.index == 7 then ctx:fail("too large", { retry = false }) end
    end })
  local list = {}
  for i = 1, 20 do list[i] = i end
  flow.new("many"):data { list = list }
    :add_grouped(ItemOp, { input = "list", max_concurrent = 4, allow_failure = true, label = "n" }):run()
  flow.new("second"):add(flow.op("SleepOp", function() flow.sleep(2) end)):run()
  local function op(name, needs, gives)
    return flow.op(name, { needs = needs, gives = gives, run = function(ctx)
      for key in pairs(gives) do ctx:set(key, 1) end
    end })
  end
  flow.graph("third"):add(op("AOp", {}, { a = "any", b = "any" })):add(op("MiddleOp", { a = "any", b = "any" }, {}))
    :add(op("LastOp", {}, {}), { after = "MiddleOp" }):run()
]]
local result = host.script(source, {}, { before = { "--virtual-clock", "--timeline", file } })
check.equal(result.status, 0)

-- The page after its code has executed, and what the browser has to say.
local function show(view)
  local shown = flow.exec({
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" .. folder .. "/profile",
    "--enable-logging=stderr", "--dump-dom", "file://" .. file .. view,
  }, { timeout = 120 }):await()
  check.lacks(shown.stderr, "CONSOLE", "ERR_")
  return shown.stdout
end

local page = show ""
check.contains(page, 'data-ops="20"', 'data-failed="1"', "data-ready=", "<title>many – flowlua</title>",
  '<span class="state succeeded" id="state">succeeded</span>', "<dt>ops executed</dt><dd>20</dd>",
  "<dt>attempts repeated</dt><dd>1</dd>", "too large", "&lt;/script&gt;&lt;b&gt;refused&lt;/b&gt;",
  "ItemOp</td>", "second · succeeded · 2.00 s")
check.lacks(page, "<b>refused</b>")
-- The address selects a run, a span and the form of the rows.
page = show "#select=ItemOp-3&from=0.1&to=0.4&mode=rows"
check.contains(page, "<h3>ItemOp #3", "attempt 1", "attempt 2", 'data-rows="21"')
-- An op of a graph names those before and after it.
page = show "#run=2&select=MiddleOp"
check.match(page, '<dt>after</dt><dd class="neighbours"><button[^>]*>AOp &lt;a&gt;, &lt;b&gt;</button></dd>')
check.match(page, '<dt>before</dt><dd class="neighbours"><button[^>]*>LastOp</button></dd>')
page = show "#run=1"
check.contains(page, "<title>second – flowlua</title>", 'data-ops="1"', "SleepOp</td>")
