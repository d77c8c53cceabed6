-- A page of very many runs has a row for each, timelines of the newest 200, and says how those of the others are seen.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local script = kept.script [[flow.op("AnOp", function(ctx) if arg[1] == "1" then ctx:fail "on <purpose>" end end):run()]]
flow.exec({ "sh", "-c", 'for i in $(seq 1 203); do "$0" --keep "$1" $i 2>/dev/null; done; true', kept.binary(host.binary),
  script.path }, { cwd = script.folder }):await()
local result = flow.exec({ kept.binary(host.binary), "--runs", "--html", "all.html" }, { cwd = script.folder }):await()
check.equal(result.stdout, "")
local page = flow.fs.read(script.folder .. "/all.html")
check.equal(select(2, page:gsub('<tr class="finished">', "")), 202)
check.equal(select(2, page:gsub('<a href="./all.r%w+.html">', "")), 200)
-- The oldest one has none, but its failure is shown.
check.contains(page, "[AnOp]: ", "on &lt;purpose&gt;",
  "The newest 200 runs have timelines; of the 3 others <code>flowlua --show RUN --timeline FILE</code> writes one.")
local _, files = flow.exec({ "sh", "-c", "ls all.r*.html" }, { cwd = script.folder }):await().stdout:gsub("\n", "")
check.equal(files, 200)
