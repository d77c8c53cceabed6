-- `flow.runs` has kept runs as data, and `--runs --html` and `--show --timeline` show those that are long over.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local script = kept.script [[
local MakeOp = flow.op("MakeOp", { gives = { items = "string[]" }, run = function(ctx)
  ctx:set("items", { "a", "b/c" })
  ctx:log "a line with secret-text"
  ctx:set("password", flow.secret "secret-text")
end })
local ItemOp = flow.op("ItemOp", { needs = { item = "string" }, gives = { size = "integer" }, run = function(ctx)
  if ctx:get "item" == "b/c" and not flow.fs.exists "fixed" then error "<no> & \"paper\"" end
  ctx:log("measuring", ctx:get "item")
  ctx:set("size", #ctx:get "item" + (flow.fs.exists "longer" and 10 or 0))
end })
local run = flow.new("ship"):add(MakeOp)
  :add_grouped(ItemOp, { input = "items", output = "sizes", label = "item" }):run { version = "1.2" }
if not run.ok then error(run.error) end
]]
-- A key, so that the op with the secret is kept.
local environment = { FLOWLUA_STORE_KEY = ("0123456789abcdef"):rep(4) }
check.equal(script:run({ "--keep", environment = environment }).status, 1)

local read = kept.script [[
local runs = flow.runs()
print(#runs, runs[1].id == flow.runs(runs[1].id).id, tostring(runs[1]) == "kept run: " .. runs[1].id)
local run = runs[1]
print(run.state, run.script, run.processes, run.changed >= run.started, #run.words, #run.waits)
for _, op in ipairs(run.ops) do
  print(op.path, op.op, op.state, op.attempts, op.error, op.label, op.place ~= nil, table.concat(op.inputs, " "))
end
print(run.ops[1].lines[1])
print(run.ops[1].outputs.items[2], run.ops[1].outputs.password, run.ops[1].duration >= 0)
run:timeline "page.html"
assert(run:report():find "ItemOp")
print(pcall(flow.runs, "rzzzz"))
print(pcall(flow.runs, 5))
print(pcall(run.timeline, 5))
print(pcall(run.execute, 5, "x"))
print(pcall(run.execute, run, 5))
print(pcall(run.execute, run, "ship/NoOp"))
]]
local function read_runs()
  local result = flow.exec({ kept.binary(host.binary), "--store", script.folder .. "/.flowlua", "--keep", read.path },
    { cwd = script.folder, check = false }):await()
  check.equal(result.status, 0, result.stderr)
  return result.stdout
end
local text = read_runs()
check.contains(text, "1\ttrue\ttrue\n", "failed\tscript.lua\t1\ttrue\t0\t0\n",
  "ship/MakeOp\tMakeOp\tfinished\t1\tnil\tnil\ttrue\t",
  "ship/ItemOp #1 a\tItemOp\tfinished\t1\tnil\ta\ttrue\titem\n",
  "ship/ItemOp #2 b/c\tItemOp\tfailed\t1\t", "\tb/c\ttrue\titem\n", "b/c\tnil\ttrue\n",
  "bad use of 'runs' (there is no run 'rzzzz'", "bad argument #1 to 'runs' (string expected, got number)",
  "calling 'timeline' on bad self (kept run expected): write run:timeline",
  "calling 'execute' on bad self (kept run expected): write run:execute",
  "bad argument #1 to 'execute' (path of an op expected, got number)",
  "bad use of 'execute' (no op of run ", " is named 'ship/NoOp')")
check.contains(text, "\na line with <redacted>\n")
check.lacks(text, "secret-text")
check.contains(flow.fs.read(script.folder .. "/page.html"), '"ItemOp"', "script.lua")

-- The pages.
local function command(...)
  return flow.exec({ kept.binary(host.binary), ... }, { cwd = script.folder, check = false }):await()
end
local id = command("--runs").stdout:match "\n(r%w+)"
check.equal(command("--show", id, "--timeline", "t.html").status, 0)
check.contains(flow.fs.read(script.folder .. "/t.html"), '"ItemOp"', id)
check.contains(command("--show", id, "--report", "-").stdout, "ItemOp")
flow.fs.write(script.folder .. "/fixed", "")
check.equal(script:run({ "--resume", environment = environment }).status, 0)
check.equal(script:run({ "--keep", environment = environment }).status, 0)
flow.fs.remove(script.folder .. "/fixed")
check.equal(script:run({ "--keep", environment = environment }).status, 1)
check.equal(command("--runs", "--html", "all.html").status, 0)
local page = flow.fs.read(script.folder .. "/all.html")
local _, rows = page:gsub('<tr class="', "")
check.equal(rows, 3)
check.contains(page, 'class="finished"', 'class="failed"', "(usually ", "&lt;no&gt; &amp; &quot;paper&quot;",
  '<a href="./all.' .. id .. '.html">', "Content-Security-Policy")
check.contains(flow.fs.read(script.folder .. "/all." .. id .. ".html"), '"ItemOp"')
for _, words in ipairs { { "--html", "x.html" }, { "--show", id, "--html", "x.html" }, { "--runs", "--html" } } do
  check.equal(command(table.unpack(words)).status, 2)
end

-- An op has its lines and the reason why it was executed again; one is executed again with the code of now.
local again = kept.script [[
local run = flow.runs(arg[1])
local function show(op) print(op.path, op.state, op.why, table.concat(op.lines, "|"), op.outputs.size) end
for _, op in ipairs(run.ops) do if op.label then show(op) end end
flow.fs.write("longer", "")
show(run:execute "ship/ItemOp #1 a")
print(run:execute "ItemOp #1", #run.ops)
flow.fs.remove "longer"
flow.fs.write("broken", "")
local ok, problem = pcall(run.execute, run, "ship/ItemOp #1 a")
print(ok, problem.stderr:match "measure what")
]]
script:edit('  ctx:log("measuring"', '  if flow.fs.exists "broken" then error "measure what" end\n  ctx:log("measured"')
local result = flow.exec({ kept.binary(host.binary), "--store", script.folder .. "/.flowlua", "--keep", again.path, id },
  { cwd = script.folder, check = false, env = environment }):await()
check.equal(result.status, 0, result.stderr)
check.contains(result.stdout, "ship/ItemOp #1 a\tfinished\tnil\tmeasuring a\t1\n",
  "ship/ItemOp #2 b/c\tfinished\tit had failed: ", "\tmeasuring b/c\t3\n",
  "ship/ItemOp #1 a\tfinished\tit was chosen\tmeasured a\t11\n", "nil\t3\n", "false\tmeasure what\n")
