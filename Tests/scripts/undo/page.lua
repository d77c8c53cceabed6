-- The page of a timeline shows undos as bars of their own, and what is kept as not executed, in a browser as well.
-- clock: real: a browser and the script are other programs
local flow, check, kept = require "flow", require "check", require "kept"

local script = kept.script [[
local ListOp = flow.op("ListOp", function(ctx) ctx:set("list", { 1, 2, 3 }) end)
local CreateOp = flow.op("CreateOp", {
  undo = function(ctx) if ctx.index == 2 then ctx:fail "</script>stuck" end end,
  run = function() end,
})
local FailOp = flow.op("FailOp", function(ctx) ctx:fail "no" end)
flow.new("work"):add(ListOp):add_grouped(CreateOp, { input = "list", as = "item", max_concurrent = 1 })
  :add(FailOp):run()
]]
local page, summary = script.folder .. "/page.html", script.folder .. "/summary.json"
assert(script:run({ "--keep" }).status ~= 0)
script:run { "--resume", "--timeline", page, "--summary=json:" .. summary }

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end
local run = flow.json.decode(read(page):match 'id="data">(.-)</script>').runs[1]
check.equal(run.numbers.ops, 3)
check.equal(run.numbers.kept, 2)
check.equal(run.numbers.undone, 2)
check.equal(run.numbers.undosFailed, 1)
-- The undone op was executed again.
local states = {}
for span, state in ipairs(run.spans.state) do states[span] = state end
check.same(states, { 2, 4, 1, 1, 4, 1, 2 })
check.equal(run.spans.length[2], 0)
local undos = {}
for _, undo in ipairs(run.undos) do undos[#undos + 1] = ("%d %d %s"):format(undo[1], undo[4], undo[6]) end
check.same(undos, { "5 1 ", "4 2 </script>stuck", "3 1 " })
local problems = {}
for _, problem in ipairs(run.problems) do problems[#problems + 1] = problem.title .. ": " .. problem.message end
check.same(problems, { "FailOp: no", "CreateOp #2 couldn't be undone: </script>stuck" })
check.contains(run.messages["1"], "Kept from run r")

local totals = flow.json.decode(read(summary))
check.equal(totals.undone, 2)
check.equal(totals.undos_failed, 1)
check.equal(totals.kept, 2)

-- The browser draws both without an error.
local function show(view)
  local shown = flow.exec({
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" .. script.folder .. "/profile",
    "--enable-logging=stderr", "--dump-dom", "file://" .. page .. view,
  }, { timeout = 120 }):await()
  check.lacks(shown.stderr, "CONSOLE", "ERR_")
  return shown.stdout
end
local shown = show "#select=CreateOp-2"
check.contains(shown, 'data-ops="3"', 'data-undone="2"', 'data-kept="2"', "data-ready=",
  "<dt>undone</dt><dd>2</dd>", "<dt>couldn't be undone</dt><dd>1</dd>", "<dt>kept</dt><dd>2</dd>",
  '<body class="undone kept">', "<h3>CreateOp #2</h3>", "<dt>undo</dt>", " failed: &lt;/script&gt;stuck</dd>")
check.contains(show "#select=ListOp&mode=rows", "<h3>ListOp</h3>", "<dd>Kept from run r")
