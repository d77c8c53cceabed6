-- A timeline stays short: many lanes are one row until they are opened, and narrow parts of the critical path are named below it.
-- clock: real: a browser is outside
local flow, host, check = require "flow", require "host", require "check"
local browser, scratch = require "browser", require "scratch"

local folder, _ <close> = scratch.folder()
local file = folder .. "/page.html"
local result = host.script([[
  local flow = require "flow"
  local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, retry = { attempts = 2, delay = 1 },
    run = function(ctx)
      flow.sleep(ctx.index == 1 and 9 or 1)
      if ctx.index == 2 and ctx.attempt == 1 then ctx:fail "again" end
      if ctx.index == 35 then ctx:fail("too large", { retry = false }) end
    end })
  local list = {}
  for i = 1, 40 do list[i] = i end
  local function brief(name) return flow.op(name, function() flow.sleep(0.1) end) end
  local RetriedOp = flow.op("RetriedOp", { retry = { attempts = 2, delay = 3 }, run = function(ctx)
    flow.sleep(1)
    if ctx.attempt == 1 then ctx:fail "once more" end
  end })
  flow.new("many"):data { list = list }:add(brief "FirstOp")
    :add_grouped(ItemOp, { input = "list", max_concurrent = 40, allow_failure = true })
    :add(RetriedOp):add(brief "LastOp"):run()
]], {}, { before = { "--virtual-clock", "--timeline", file } })
check.equal(result.status, 0)

local function rows(expression) return "chart.rows.list.map((row) => row.text)" .. expression end
local click = [[(() => {
  const bars = document.querySelector("#bars"), box = bars.getBoundingClientRect();
  const at = (AXIS + ROW * %s + 5 - chart.scroll.scrollTop) + box.top;
  for (const type of ["pointerdown", "pointerup"]) {
    bars.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: box.left + 20, clientY: at, bubbles: true }));
  }
  return [chart.rows.list.length, location.hash];
})()]]
local results = browser.perform {
  { "size", 1200, 900 },
  { "open", "file://" .. file },
  { "wait", "document.documentElement.dataset.ready" },
  { "evaluate", rows "" },
  -- Opens and closes it.
  { "evaluate", "HTMLCanvasElement.prototype.setPointerCapture = () => {}; " .. click:format "13" },
  { "evaluate", click:format "42" },
  -- An item that is hidden gets its row when it is chosen, also by an arrow or an address.
  { "evaluate", "choose(spans.find('ItemOp-11')); keys.ArrowDown(); [spans.title(chart.chosen), chart.rows.list.length]" },
  { "evaluate", "toggle(chart.rows.list.find((row) => row.group).group); chart.rows.list.length" },
  { "evaluate", "location.hash = '#select=ItemOp-35'; 0" },
  { "wait", "chart.rows.list.length === 45" },
  { "evaluate", "spans.title(chart.chosen)" },
  -- No op executes between its attempts.
  { "evaluate", "Array.from(spans.concurrency(141)).filter((_, k) => k % 10 === 5).map((n) => Math.round(n * 10) / 10)" },
  { "evaluate", "[...document.querySelectorAll('#path button')].map((part) => [part.textContent, part.title, "
    .. "part.style.getPropertyValue('--work')])" },
  { "evaluate", "document.querySelector('#narrow').innerText" },
  { "evaluate", "document.querySelector('#narrow button').click(); [spans.title(chart.chosen), chart.to < 1]" },
}
check.equal(#results[4], 1 + 1 + 11 + 1 + 2)
check.same({ results[4][1], results[4][2], results[4][14], results[4][15], results[4][16] },
  { "FirstOp", "ItemOp × 40", "▸ 29 more rows", "RetriedOp", "LastOp" })
check.same(results[5], { 45, "#open=2" })
check.same(results[6], { 16, "" })
check.same(results[7], { "ItemOp #12", 45 })
check.equal(results[8], 16)
check.equal(results[11], "ItemOp #35")
check.same(results[12], { 40, 1, 2, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1 })
-- A label that doesn't fit into the bar is below it; the part of a wait is grey.
check.same(results[13], {
  { "", "FirstOp 100 ms (1 %)", "" }, { "ItemOp #1 9.00 s", "ItemOp #1 9.00 s (63 %)", "" },
  { "RetriedOp 5.00 s", "RetriedOp 5.00 s (35 %), 3.00 s of it waiting", "40.0%" },
  { "", "LastOp 100 ms (1 %)", "" },
})
check.equal(results[14], "FirstOp 100 ms\nLastOp 100 ms")
check.same(results[15], { "FirstOp", true })
