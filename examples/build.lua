-- run: release
--
-- A build: a dependency that is seldom there is fetched, all modules are compiled, linked for one
-- of two targets, and tested within a second. What is left over is removed whatever happens.
--
--   scripts/flowlua examples/build.lua [debug|release]
local flow = require "flow"

local sources = {
  greeting = "return function(name) return 'Hello, ' .. name .. '!' end",
  main = "local shout = require 'shout'; return shout(require 'greeting' 'world')",
}

local failures = 2
local FetchOp = flow.op("FetchOp", {
  doc = "Fetches a module from a server that answers at the third time.",
  gives = { fetched = "string" },
  retry = { attempts = 3, delay = 0.01, factor = 2 },
  run = function(ctx)
    failures = failures - 1
    if failures >= 0 then ctx:fail "connection reset" end
    ctx:set("fetched", "return function(text) return text:upper() end")
  end,
})

local CompileOp = flow.op("CompileOp", {
  doc = "Compiles one module; a mistake in it names file and line.",
  needs = { source = "table" },
  gives = { object = "table" },
  run = function(ctx)
    local source = ctx:get "source"
    local code = assert(load(source.text, "=" .. source.name .. ".lua"))
    local strip = ctx.run.data.target == "release"
    ctx:set("object", { name = source.name, code = string.dump(code, strip) })
  end,
})

local LinkOp = flow.op("LinkOp", function(ctx)
  local parts = { "local main = ...\n" }
  for _, object in ipairs(ctx:get("objects", "table[]")) do
    parts[#parts + 1] = ("package.preload[%q] = load(%q)\n"):format(object.name, object.code)
  end
  ctx:set("content", table.concat(parts) .. "return require 'main'\n")
end)

local TestOp = flow.op("TestOp", {
  doc = "Runs what was built, and gives up on it after a second.",
  timeout = 1,
  needs = { content = "string" },
  run = function(ctx)
    local result = assert(load(ctx:get "content"))()
    if result ~= "HELLO, WORLD!" then ctx:fail("it printed " .. result) end
    ctx:log("it prints " .. result)
  end,
})

local PrepareOp = flow.op("PrepareOp", function(ctx)
  local list = { { name = "shout", text = ctx:get "fetched" } }
  for _, name in ipairs { "greeting", "main" } do
    list[#list + 1] = { name = name, text = sources[name] }
  end
  ctx:set("sources", list)
end)

local UnknownOp = flow.op("UnknownOp", function(ctx) ctx:fail("no target " .. ctx:get "target") end)
local NoteOp = flow.op("NoteOp", function(ctx) ctx:log "without names for errors: tested twice" end)
local CleanOp = flow.op("CleanOp", function(ctx) ctx:set("sources", nil) end)

local run = flow.new("build")
  :data { target = arg[1] or "debug" }
  :add(FetchOp):add(PrepareOp)
  :add_grouped(CompileOp, { input = "sources", output = "objects", max_concurrent = 4 })
  :add(LinkOp)
  :case("target", "release"):add(NoteOp):add(TestOp):add(TestOp)
  :case("target", "debug"):add(TestOp)
  :otherwise():add(UnknownOp)
  :combine()
  :add_finally(CleanOp)
  :run()

for _, event in ipairs(run:events()) do
  if event.kind == "retry" or event.kind == "log" or event.kind == "case" then
    print(event.kind, event.op, event.message)
  end
end
if not run.ok then error(tostring(run.error), 0) end
print("built for " .. run.data.target)
