-- No secret reaches the store: not as a value that an op sets, not within one, not in an error, a name, a label or an input.
-- clock: real: the script is another program
local check, flow, kept = require "check", require "flow", require "kept"

local script = kept.script [[
local token = flow.secret "hunter2-token"
local MakeOp = flow.op("MakeOp", function(ctx) effect "make" ctx:set("token", token) end)
local UseOp = flow.op("UseOp", { needs = { token = "string" }, run = function(ctx)
  effect "use"
  ctx:set("length", #ctx:get "token")
end })
local LeakOp = flow.op("LeakOp", function(ctx) effect "leak" ctx:set("url", { "https://x/?t=" .. ctx:get "token" }) end)
local ItemOp = flow.op("ItemOp", { needs = { item = "string" }, run = function(ctx) effect "item" end })
local FailOp = flow.op("FailOp", function(ctx) ctx:fail("no " .. ctx:get "token") end)
local NamedOp = flow.op("hunter2-token Op", function(ctx) effect "named" ctx:set("n", 1) end)
flow.new("work"):add(NamedOp):add(MakeOp):add(UseOp):add(LeakOp):data { list = { "a-hunter2-token" } }
  :add_grouped(ItemOp, { input = "list", label = function(item) return item end }):add(FailOp):run()
]]

local result = script:run { "--keep", "--events", "events.json", arguments = { "hunter2-token" } }
check.contains(result.stderr,
  "[MakeOp] isn't kept, so a resumed run executes it again: <token>, which it has set, is a secret",
  "[LeakOp] isn't kept, so a resumed run executes it again: <url>, which it has set, contains the text of a secret")
for _, file in ipairs { script.folder .. "/events.json", table.unpack(flow.fs.list(script.folder .. "/.flowlua")) } do
  local text = flow.fs.read(file)
  for _, form in ipairs { "hunter2-token", "aHVudGVyMi10b2tlb", "68756e7465723" } do check.lacks(text, form) end
end
script:expect_effects("named", "make", "use", "leak", "item")
-- An op that was given a secret is compared with it, by a digest with the store's key.
script:resume()
script:expect_effects("make", "leak")
-- An op is found by its name as it is there.
script:edit([[ctx:set("n", 1)]], [[ctx:set("n", 2)]])
check.contains(script:resume(), "[<redacted> Op] Again: ")
script:expect_effects("named", "make", "leak")
script:edit([[flow.secret "hunter2-token"]], [[flow.secret "hunter3-token"]])
check.contains(script:resume(), "[UseOp] Again: <token> differs")
script:expect_effects("make", "use", "leak")
