-- A key that an op reads by ctx.run counts like one that it reads by ctx:get without a declaration.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local function script()
  return kept.script([[
    local ReadOp = flow.op("ReadOp", { cache = true, gives = { seen = "string" }, run = function(ctx)
      effect "read"
      ctx:set("own", 1)
      ctx:set("seen", tostring(READ))
    end })
    local data = { flag = os.getenv "V" or "1", other = os.getenv "W" }
    data[os.getenv "NAME" or "name"] = 1
    local run = flow.new("f"):data(data):add(ReadOp)
      :add(flow.op("LastOp", function(ctx) if os.getenv "FAIL" then ctx:fail "no" end end)):run()
    if os.getenv "SHOWN" then print(run.data.seen) end
  ]])
end

local function case(read, edits)
  local text = script()
  text:write((text.text:gsub("READ", function() return read end)))
  text:run { "--keep", environment = { FAIL = 1 } }
  check.equal(text:effects()[1], "read", read)
  local log = text:resume { environment = { FAIL = 1 } }
  check.contains(log, "[ReadOp] Kept from run")
  check.equal(#text:effects(), 0, read)
  for _, edit in ipairs(edits) do
    edit.environment.FAIL = 1
    log = text:resume { environment = edit.environment }
    check.contains(log, edit.again and "[ReadOp] Again: " .. edit.again or "[ReadOp] Kept from run")
  end
end

case("ctx.run.data.flag", {
  { environment = { W = 2 } }, { environment = { NAME = "x" } }, { environment = { V = 2 }, again = "<flag> differs" },
})
case("ctx.run.data.other", { { environment = { V = 2 } }, { environment = { W = 2 }, again = "<other> differs" } })
case("#ctx.run:summary() > 0", { { environment = { V = 2 }, again = "<flag> differs" } })
case("#ctx.run:events() > 0", { { environment = { NAME = "x" }, again = "<name>, <ctx.run.data> differ" } })
case("(function() local n = 0 for _ in pairs(ctx.run.data) do n = n + 1 end return n end)()", {
  { environment = { V = 2 }, again = "<flag> differs" },
})

-- An op that does so has no cache.
local cached = script()
cached:write((cached.text:gsub("READ", "ctx.run.data.flag")))
local result = cached:run { "--keep", environment = { SHOWN = 1 } }
check.equal(result.stdout, "1\n")
check.contains(result.stderr, "[ReadOp] isn't cached: it has read <flag>, which isn't in its 'needs'")
check.equal(cached:run({ "--keep", environment = { SHOWN = 1, V = 2 } }).stdout, "2\n")

-- An item's own data under the same name hide it, so nothing can be compared.
local hidden = kept.script [[
  local ItemOp = flow.op("ItemOp", { needs = { flag = "integer" },
    run = function(ctx) effect "item" ctx:set("x", ctx.run.data.flag) end })
  flow.new("f"):data { flag = "all", list = { 1 } }:add_grouped(ItemOp, { input = "list" })
    :add(flow.op("LastOp", function(ctx) ctx:fail "no" end)):run()
]]
result = hidden:run { "--keep" }
check.contains(result.stderr,
  "[ItemOp] isn't kept, so a resumed run executes it again: <ctx.run.data of a name of its own>, which it has read, can't be compared")
hidden:resume()
hidden:expect_effects("item", "item")

-- Data that an op reads by the ctx or the run of an op around it count for that op, and the one within has no cache.
for _, read in ipairs { 'outer:get "flag"', "outer.run.data.flag" } do
  local nested = kept.script([[
    flow.keep()
    local OuterOp = flow.op("OuterOp", function(outer)
      effect "outer"
      local InnerOp = flow.op("InnerOp", { cache = true, gives = { x = "string" }, run = function(ctx)
        effect "inner"
        ctx:set("x", READ)
      end })
      local MiddleOp = flow.op("MiddleOp", function(ctx) ctx:set("x", InnerOp:run().data.x) end)
      outer:set("x", MiddleOp:run().data.x)
    end)
    local work = flow.new("f"):data { flag = os.getenv "V" }:add(OuterOp)
      :add(flow.op("LastOp", function(ctx) print(ctx:get "x") ctx:fail "no" end)):run()
    if not work.ok then os.exit(3) end
  ]])
  nested:write((nested.text:gsub("READ", function() return read end)))
  result = nested:run { environment = { V = 1 } }
  check.equal(result.stdout, "1\n", read)
  check.contains(result.stderr, "[InnerOp] isn't cached: it has read <data of another op>")
  nested:expect_effects("outer", "inner")
  result = nested:run { environment = { V = 2 } }
  check.equal(result.stdout, "2\n", read)
  nested:expect_effects("outer", "inner")
  result = nested:run { "--resume", "--follow", environment = { V = 2 } }
  check.contains(result.stderr, "[OuterOp] Kept from run")
  nested:expect_effects()
  result = nested:run { "--resume", "--follow", environment = { V = 3 } }
  check.contains(result.stderr, "[OuterOp] Again: <flag> differs")
  nested:expect_effects("outer", "inner")
end
