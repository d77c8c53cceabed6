-- Seventy common mistakes have messages that name the function, the argument, what was expected and what came.
local flow = require "flow"
local json, fs, http = flow.json, flow.fs, flow.http
local folder = fs.temp_dir()
fs.write(folder .. "/bad.json", "{\n  a: 1\n}")

local function nothing() end
local AOp = flow.op("AOp", nothing)
local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, run = nothing })
local program = flow.exec({ "sh", "-c", "echo why >&2; exit 3" }, { check = false })
program:await()
local run = flow.op("TotalOp", { gives = { total = "integer" }, run = function(ctx) ctx:set("total", 1) end }):run()
local asked = http "http://127.0.0.1:1/"
asked:cancel()
-- The error of an op.
local function failed(definition, data) error(tostring(flow.op("BadOp", definition):run(data).error), 0) end
local function group(data, options)
  error(tostring(flow.new("f"):data(data):add_grouped(ItemOp, options):run().error), 0)
end
local ended
flow.op("EndedOp", function(ctx) ended = ctx end):run()

-- Each mistake with its whole message; HERE is the mistake's line.
local mistakes = {
  -- Fields that are there later, or elsewhere.
  { function() return asked.status end,
    "HERE: 'status' is of the response: await the request first" },
  { function() return asked.body end,
    "HERE: 'body' is of the response: await the request first" },
  { function() return flow.exec({ "true" }).stdout .. "x" end,
    "HERE: 'stdout' isn't there yet: await the task first" },
  { function() ended:set("a", 1) end,
    "HERE: bad use of 'set' (the op of this ctx has finished)" },
  { function() return ended.attempt end,
    "HERE: bad use of 'attempt' (the op of this ctx has finished)" },
  { function() return run.total end,
    "HERE: a run has no field 'total': its data has it (run.data.total)" },
  { function() run:run() end,
    "HERE: attempt to call a nil value (method 'run')" },
  { function() flow.new("f"):ad(AOp) end,
    "HERE: a flow has no field 'ad' (did you mean 'add'?)" },
  { function() flow.graph("g"):add_groupd(ItemOp, {}) end,
    "HERE: a graph has no field 'add_groupd' (did you mean 'add_grouped'?)" },
  { function() AOp:strat() end,
    "HERE: an op has no field 'strat' (did you mean 'start'?)" },
  { function() failed(function(ctx) ctx:log(ctx.n) end, { n = 5 }) end,
    [[[BadOp] HERE: ctx has no field 'n': ctx:get "n" reads the data]] },
  -- Letters.
  { function() return run.dta end,
    "HERE: a run has no field 'dta' (did you mean 'data'?)" },
  { function() run:awiat() end,
    "HERE: a run has no field 'awiat' (did you mean 'await'?)" },
  { function() return asked.stat end,
    "HERE: a task has no field 'stat' (did you mean 'state'?)" },
  { function() return program.stdot end,
    "HERE: a task has no field 'stdot' (did you mean 'stdout'?)" },
  { function() return flow.resolved(1).resutl end,
    "HERE: a task has no field 'resutl' (did you mean 'result'?)" },
  { function() failed(function(ctx) ctx:lgo "x" end) end,
    "[BadOp] HERE: ctx has no field 'lgo' (did you mean 'log'?)" },
  { function() failed(function(ctx) return ctx.attemtp + 1 end) end,
    "[BadOp] HERE: ctx has no field 'attemtp' (did you mean 'attempt'?)" },
  { function() return flow.ops.PrnitOp end,
    "HERE: flow.ops.PrnitOp isn't there (did you mean 'PrintOp'?)" },
  { function() return flow.ops.Print end,
    "HERE: flow.ops.Print isn't there (did you mean 'PrintOp'?)" },
  { function() flow.op("XOp", { retires = 3, run = nothing }) end,
    "HERE: bad argument #2 to 'op' (unknown field 'retires' (did you mean 'retry'?))" },
  { function() flow.op("XOp", { retry = { atempts = 3 }, run = nothing }) end,
    "HERE: bad argument #2 to 'op' (unknown field 'retry.atempts' (did you mean 'attempts'?))" },
  { function() flow.op("XOp", { needs = { a = "strnig" }, run = nothing }) end,
    "HERE: bad argument #2 to 'op' (field 'needs': type of 'a': unknown type 'strnig' (did you mean 'string'?))" },
  { function() flow.op("XOp", { thread = "wroker", run = nothing }) end,
    [[HERE: bad argument #2 to 'op' (field 'thread': "main", "worker" or "remote" expected, got "wroker")]] },
  { function() flow.exec({ "ls" }, { timout = 1 }) end,
    "HERE: bad argument #2 to 'exec' (unknown field 'timout' (did you mean 'timeout'?))" },
  { function() flow.exec({ "true" }, { stdin = { fiel = "x" } }) end,
    "HERE: bad argument #2 to 'exec' (unknown field 'stdin.fiel' (did you mean 'file'?))" },
  { function() flow.exec({ "true" }, { stdin = { bytes = 1 } }) end,
    "HERE: bad argument #2 to 'exec' (field 'stdin.bytes': string expected, got number)" },
  { function() flow.exec({ "true" }, { stdin = {} }) end,
    "HERE: bad argument #2 to 'exec' (field 'stdin': { bytes = string } or { file = path } expected, got an empty table)" },
  { function() flow.exec({ "true" }, { env = { A = 1 } }) end,
    "HERE: bad argument #2 to 'exec' (field 'env': 'A': string or false expected, got number)" },
  { function() flow.csv.rows("a,b", { separator = "::" }) end,
    "HERE: bad argument #2 to 'rows' (field 'separator': a string of one byte, no quote and no line break, "
      .. "expected, got '::')" },
  { function() flow.keep { resume = 1 } end,
    "HERE: bad argument #1 to 'keep' (field 'resume': boolean or string expected, got number)" },
  { function() flow.new("f"):add_grouped(ItemOp, { inptu = "items" }) end,
    "HERE: bad argument #2 to 'add_grouped' (unknown field 'inptu' (did you mean 'input'?))" },
  { function() http { ulr = "http://h/" } end,
    "HERE: bad argument #1 to 'flow.http' (unknown field 'ulr' (did you mean 'url'?))" },
  { function() flow.csv.rows("a,b", { seperator = ";" }) end,
    "HERE: bad argument #2 to 'rows' (unknown field 'seperator' (did you mean 'separator'?))" },
  { function() flow.keep { stroe = "x" } end,
    "HERE: bad argument #1 to 'keep' (unknown field 'stroe' (did you mean 'store'?))" },
  { function() flow.machine { name = "m", start = "laod", flow.step("load", { run = nothing }) } end,
    "HERE: bad argument #1 to 'machine' (machine 'm': the start 'laod' is no step (did you mean 'load'?))" },
  { function() require "flow.jsn" end,
    "HERE: module 'flow.jsn' not found:\n\tdid you mean 'flow.json'?" },
  -- A dot for a colon, and other forms of a call.
  { function() local f = flow.new "f" f.add(AOp) end,
    "HERE: calling 'add' on bad self (flow expected, got op): write flow:add" },
  { function() AOp.run() end,
    "HERE: calling 'run' on bad self (op or flow expected, got no value): write op:run or flow:run" },
  { function() failed(function(ctx) ctx.set("a", 1) end) end,
    "[BadOp] HERE: calling 'set' on bad self (ctx expected, got string): write ctx:set" },
  { function() flow.new("f"):add(nothing) end,
    "HERE: bad argument #1 to 'add' (op expected, got function; make one with flow.op(name, function))" },
  { function() flow.new("f"):add(run) end,
    "HERE: bad argument #1 to 'add' (op expected, got run)" },
  { function() flow.new("f"):data("a", 1) end,
    "HERE: bad argument #1 to 'data' (table expected, got string)" },
  { function() flow.exec("ls -l") end,
    [[HERE: bad argument #1 to 'exec' (table expected, got string; its arguments are strings of their own: { "ls", "-l" })]] },
  { function() flow.exec("ls", "-l") end,
    [[HERE: bad argument #1 to 'exec' (table expected, got string; its arguments are strings of their own: { "ls", "-l" })]] },
  { function() flow.exec("ls | wc") end,
    [[HERE: bad argument #1 to 'exec' (table expected, got string; a command line is for a shell: { "sh", "-c", … })]] },
  { function() flow.exec { "ls", true } end,
    "HERE: bad argument #1 to 'exec' (a list of strings expected, got a boolean as element 2)" },
  { function() flow.exec { "ls", nil, "x" } end,
    "HERE: bad argument #1 to 'exec' (a list of strings expected, got nil as element 2)" },
  { function() flow.exec { "ls", all = true } end,
    "HERE: bad argument #1 to 'exec' (a list of strings expected, got a table with the key 'all')" },
  { function() flow.when_all_succeed { flow.resolved(1), nil, flow.resolved(2) } end,
    "HERE: bad argument #1 to 'when_all_succeed' (list of tasks expected, got nil as element 2)" },
  { function() flow.when_all_succeed(flow.resolved(1), flow.resolved(2)) end,
    "HERE: bad argument #1 to 'when_all_succeed' (list of tasks expected, got task)" },
  { function() flow.spawn(nothing()) end,
    "HERE: bad argument #1 to 'spawn' (function expected, got no value)" },
  { function() AOp:run "x" end,
    "HERE: bad argument #1 to 'run' (table expected, got string)" },
  { function() http "example.com" end,
    "HERE: bad argument #1 to 'flow.http' (a URL that begins with http:// or https:// expected, got 'example.com')" },
  { function() http { url = "http://h/", headers = { "Accept: x" } } end,
    "HERE: bad argument #1 to 'flow.http' (field 'headers': names are strings, got a key of type integer)" },
  -- Options of another type.
  { function() flow.op("XOp", { timeout = "10s", run = nothing }) end,
    "HERE: bad argument #2 to 'op' (field 'timeout': number expected, got string)" },
  { function() flow.op("XOp", { timeout = -1, run = nothing }) end,
    "HERE: bad argument #2 to 'op' (field 'timeout': a finite number of seconds, greater than 0, expected, got -1)" },
  { function() flow.op("XOp", { retry = "3", run = nothing }) end,
    "HERE: bad argument #2 to 'op' (field 'retry': table, or number of attempts of at least 1, expected, got string)" },
  { function() flow.op("XOp", { retry = 0, run = nothing }) end,
    "HERE: bad argument #2 to 'op' (field 'retry': table, or number of attempts of at least 1, expected, got 0)" },
  { function() flow.op("XOp", { needs = { "a", "b" }, run = nothing }) end,
    "HERE: bad argument #2 to 'op' (field 'needs': keys are strings, got a key of type integer)" },
  { function() flow.op("XOp", { needs = {} }) end,
    "HERE: bad argument #2 to 'op' (field 'run': function expected, got nil)" },
  { function() flow.op(nothing) end,
    "HERE: bad argument #1 to 'op' (string expected, got function)" },
  { function() flow.op "XOp" end,
    "HERE: bad argument #2 to 'op' (function or table expected, got no value)" },
  { function() flow.new("f"):add_grouped(ItemOp, { input = "items", max_concurrent = "4" }) end,
    "HERE: bad argument #2 to 'add_grouped' (field 'max_concurrent': integer of at least 1 expected, got string)" },
  { function() flow.new("f"):add_grouped(AOp, { input = "items" }) end,
    "HERE: bad argument #2 to 'add_grouped' (op 'AOp' has no primary input: " ..
      "give 'as' here, or 'primary_input' or one key of 'needs' in the op)" },
  { function() flow.new("f"):add_grouped(ItemOp, { input = { 1, 2 } }) end,
    "HERE: bad argument #2 to 'add_grouped' (field 'input': string expected, got table)" },
  { function() flow.sleep "1s" end,
    "HERE: bad argument #1 to 'sleep' (number expected, got string)" },
  { function() flow.exec({ "ls" }, { env = { "A=b" } }) end,
    "HERE: bad argument #2 to 'exec' (field 'env': names are strings, got a key of type integer)" },
  { function() fs.write("x", { a = 1 }) end,
    "HERE: bad argument #2 to 'write' (string expected, got table)" },
  -- Data.
  { function() failed({ gives = { url = "string" }, run = nothing }) end,
    "[BadOp] didn't set <url>, which it gives" },
  { function() failed({ gives = { url = "string" }, run = function(ctx) ctx:set("ulr", "x") end }) end,
    "[BadOp] didn't set <url>, which it gives (did you mean <ulr>?)" },
  { function() failed({ needs = { user_name = "string" }, run = nothing }, { username = "x" }) end,
    "[BadOp] can't find <user_name> in data bucket (did you mean <username>?)" },
  { function() failed({ needs = { n = "integer" }, run = nothing }, { n = "1" }) end,
    "[BadOp] <n> in data bucket is <1> with type <string>, but NOT type <integer>." },
  { function() group({ items = { 1, nil, 3 } }, { input = "items" }) end,
    "[f/Group] <items> in data bucket is <{1, 3 = 3}> with type <table>, but NOT type <any[] (it has no item 2)>." },
  { function() group({ items = 5 }, { input = "items" }) end,
    "[f/Group] <items> in data bucket is <5> with type <integer>, but NOT type <any[]>." },
  { function() group({ items = { 1, "2" } }, { input = "items" }) end,
    "[f/ItemOp #2] <n> in data bucket is <2> with type <string>, but NOT type <integer>." },
  { function() group({ itmes = { 1 } }, { input = "items" }) end,
    "[f/Group] can't find <items> in data bucket (did you mean <itmes>?)" },
  { function() run.data.total = 2 end,
    "HERE: can't set field 'total': run.data is a copy, which the run never sees; " ..
      "ops set data with ctx:set, and start takes the data to begin with" },
  { function() json.encode { 1, nil, 3 } end,
    "HERE: bad argument #1 to 'encode' (can't encode an array with holes)" },
  { function() json.encode { a = print } end,
    "HERE: bad argument #1 to 'encode' (can't encode a value of type function at a)" },
  { function() json.decode '{"a": 1,}' end,
    "HERE: expected a key in double quotes at line 1, column 9" },
  { function() json.read(folder .. "/bad.json") end,
    "HERE: 'FOLDER/bad.json': expected a key in double quotes at line 2, column 3" },
  { function() fs.read "/no/such/file" end,
    "HERE: can't read '/no/such/file': No such file or directory" },
  { function() return "x" .. flow.secret "abc" end,
    "HERE: attempt to concatenate a secret value" },
  -- Programs.
  { function() flow.exec { "frobnicate" }:await() end,
    "can't run 'frobnicate': no such program on the PATH" },
  { function() flow.exec({ "ls" }, { cwd = "/no/such" }):await() end,
    "can't run 'ls' in '/no/such': No such file or directory" },
  { function() flow.exec { "sh", "-c", "echo why >&2; exit 3" }:await() end,
    "sh -c 'echo why >&2; exit 3' exited with status 3: why" },
}
local wrong = 0
for _, mistake in ipairs(mistakes) do
  local ok, problem = pcall(mistake[1])
  local place = debug.getinfo(mistake[1], "S")
  local here = ("%s:%d: "):format(place.short_src, place.linedefined)
  local said = (ok and "nothing" or tostring(problem)):gsub(here:gsub("%p", "%%%0"), "HERE: "):gsub(folder:gsub("%p", "%%%0"), "FOLDER")
    :gsub("\n\tno f[^\n]*", "")
  if said ~= mistake[2] then
    wrong = wrong + 1
    io.stderr:write(("%sexpected: %s\ngot: %s\n"):format(here, mistake[2], said))
  end
end
if wrong > 0 then error(wrong .. " messages have changed", 0) end
