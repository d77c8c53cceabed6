-- A browser shows a live page again and again without losing what the user looks at, and stops at the final page.
-- clock: real: a browser is outside
local flow, host, check, fs = require "flow", require "host", require "check", require "flow.fs"
local browser, scratch = require "browser", require "scratch"

local folder, _ <close> = scratch.folder()
local file, stop = folder .. "/page.html", folder .. "/stop"
fs.write(folder .. "/script.lua", [[
  local flow, fs = require "flow", require "flow.fs"
  local stop = ...
  local list = {}
  for i = 1, 200 do list[i] = i end
  local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, run = function(ctx)
    if ctx.index == 7 then ctx:fail "too large" end
    if ctx.index > 60 then flow.sleep(0.1) end
    if ctx.index > 80 then while not fs.exists(stop) do flow.sleep(0.02) end end
  end })
  flow.new("watched"):data { list = list }
    :add_grouped(ItemOp, { input = "list", max_concurrent = 8, allow_failure = true }):run()
]])
local script = flow.exec { host.binary, "--timeline", file, folder .. "/script.lua", stop }
while not fs.exists(file) do flow.sleep(0.01) end

local mark = "document.querySelector('#find')"
-- The page may load itself again between two commands, and has no script for a moment then: each part is one.
local function ready(code) return { "wait", "document.readyState === 'complete' && (" .. code .. ")" } end
local results = browser.perform {
  { "size", 1200, 500 },
  { "open", "file://" .. file .. "#select=ItemOp-7" },
  -- The user arranges the page.
  ready("setMode('rows'), show(0, 0.001), " .. mark .. ".focus(), " .. mark .. ".value = 'item', find('item'), "
    .. "document.querySelectorAll('#ops th button')[1].click(), scrollTo(0, 150), "
    .. "document.querySelector('#scroll').scrollTop = 60, window.old = true, document.querySelector('#live').innerText"),
  -- Two pages later it is as before.
  ready "!window.old && (window.old = true)",
  ready("!window.old && [page.stage, location.hash, scrollY, document.querySelector('#scroll').scrollTop, sortedBy, "
    .. "document.activeElement.id, " .. mark .. ".value, document.querySelector('#details h3').textContent]"),
  -- A pause lasts until the user ends it.
  ready("document.querySelector('#pause').click(), page.live.loaded = 0, page.live.tick(), "
    .. "[document.querySelector('#age').textContent.includes('paused'), document.querySelector('#pause').textContent]"),
  -- A page that isn't written any more says so, and is loaded more and more seldom.
  ready("document.querySelector('#pause').click(), page.live.shortest = 0, page.written -= 600, "
    .. "page.live.loaded = Date.now() / 1000 - 50, page.live.tick(), "
    .. "[document.querySelector('#pause').textContent, document.querySelector('#age').textContent, page.live.delay]"),
  { "requests" },
}
check.contains(results[3], "live · written", "pause")
local kept = results[5]
check.equal(kept[1], "live")
check.contains(kept[2], "select=ItemOp-7", "mode=rows", "find=item", "to=0.001000")
check.same({ table.unpack(kept, 3) }, { 150, 60, "runs", "find", "item", "ItemOp #7" })
check.same(results[6], { true, "continue" })
check.equal(results[7][1], "pause")
check.contains(results[7][2], "written 10 min ", "was killed")
check.equal(results[7][3], 60)
for _, url in ipairs(results[8]) do check.contains(url, "file://" .. file) end

-- The final page is loaded as any other, and stays.
fs.write(stop, "")
results = browser.perform {
  { "open", "file://" .. file },
  ready("page.stage === 'final' && [document.querySelector('#live').hidden, "
    .. "document.querySelector('#about').textContent, page.live === undefined]"),
}
check.equal(script:await().stderr, "")
check.equal(results[2][1], true)
check.contains(results[2][2], "complete: the script has ended")
check.equal(results[2][3], true)
