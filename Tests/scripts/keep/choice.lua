-- The command line takes precedence over `flow.keep` in what it says, and in nothing else.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local script = kept.script [[
flow.keep { store = "mine", resume = true }
flow.new("work"):add(flow.op("A", function() effect "A" end))
  :add(flow.op("B", function(ctx) effect "B" if os.getenv "FAIL" then ctx:fail "no" end end)):run()
]]
local function stores()
  local found = {}
  for _, name in ipairs { "mine", "given", ".flowlua" } do
    if flow.fs.exists(script.folder .. "/" .. name) then found[#found + 1] = name end
  end
  return table.concat(found, " ")
end

-- Options that say nothing about the store leave it to the script.
script:run { environment = { FAIL = "1" } }
script:expect_effects("A", "B")
for _, options in ipairs { { "--resume" }, { "--trust-code" }, { "--settle", "X=done" }, {} } do
  options.environment = { FAIL = "1" }
  script:run(options)
  script:expect_effects "B"
  check.equal(stores(), "mine")
end

-- A new run, and another store.
script:run { "--keep", environment = { FAIL = "1" } }
script:expect_effects("A", "B")
check.equal(stores(), "mine")
script:run { "--store", "given", environment = { FAIL = "1" } }
script:expect_effects("A", "B")
check.equal(stores(), "mine given")
script:run { "--store", "given" }
script:expect_effects "B"

-- `--trust-code` of the command line holds although the script doesn't say it.
script = kept.script(script.text)
script:run { environment = { FAIL = "1" } }
script:effects()
script:edit('effect "A" end', 'effect "A" local _ = 1 end')
script:run { "--trust-code" }
script:expect_effects "B"

-- Another store after the first run would keep a part here and a part there.
script = kept.script [[
flow.keep()
local work = flow.new("work"):add(flow.op("A", function() end))
work:run()
flow.keep()
flow.keep { store = "other" }
]]
local result = script:run()
check.equal(result.status, 1)
check.contains(result.stderr, "script.lua:11: runs are kept in '", "already: call flow.keep before the first of them")

-- Scripts of the same name in different folders may share a store.
local store = flow.fs.temp_dir() .. "/shared"
local text = ("flow.keep { store = %q, resume = true }\n"):format(store) .. [[
flow.new("work"):add(flow.op("A", function(ctx)
  effect "A"
  if os.getenv "FAIL" then os.exit() end
end)):run()
]]
local first, second = kept.script(text), kept.script(text)
for _ = 1, 2 do
  for _, each in ipairs { first, second } do
    each:run { environment = { FAIL = "1" } }
    each:expect_effects "A"
  end
end
check.equal(select(2, first:run({ "--runs", "--store", store }).stdout:gsub(" unfinished ", "")), 1)
local runs = flow.exec { kept.binary(host.binary), "--runs", "--store", store }:await().stdout
check.equal(select(2, runs:gsub(" unfinished ", "")), 2, runs)
