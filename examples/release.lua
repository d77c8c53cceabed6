-- A release as a graph: each op starts when its data is there. Modules are checked and tested while
-- the program is built; nothing is published before all of that has succeeded.
--
--   scripts/flowlua examples/release.lua
local flow = require "flow"
local fs = flow.fs

-- The release: three modules, each of which tests itself.
local origin, shop = fs.temp_dir(), fs.temp_dir()
local function write(name, body, test)
  local text = ("local function f(a) %s end\n%s\nreturn f\n"):format(body, test)
  fs.write(origin .. "/" .. name .. ".lua", text)
end
write("cart", "return a[1] + a[2]", "assert(f { 1, 2 } == 3)")
write("price", "return a / 100", "assert(f(150) == 1.5)")
write("tax", "return a * 19 // 100", "assert(f(200) == 38, 'a wrong tax')")

local CheckoutOp = flow.op("CheckoutOp", {
  needs = { version = "string" },
  gives = { folder = "string", sources = "string[]" },
  run = function(ctx)
    local folder = fs.temp_dir()
    for _, path in ipairs(fs.list(origin)) do
      fs.copy(path, folder .. "/" .. path:match "[^/]+$")
    end
    ctx:set("folder", folder)
    ctx:set("sources", fs.list(folder, { match = "*.lua" }))
  end,
})

local LintOp = flow.op("LintOp", {
  needs = { sources = "string[]" },
  run = function(ctx)
    for _, path in ipairs(ctx:get "sources") do
      if fs.read(path):find "\t" then ctx:fail(path .. " has a tab in it") end
    end
  end,
})

local TestOp = flow.op("TestOp", {
  needs = { source = "string" },
  gives = { report = "string" },
  timeout = 60,
  run = function(ctx)
    local source = ctx:get "source"
    flow.exec { "lua5.4", source }:await()
    ctx:set("report", source:match "[^/]+$" .. " passed")
  end,
})

local BuildOp = flow.op("BuildOp", {
  needs = { sources = "string[]", folder = "string", version = "string" },
  gives = { archive = "string" },
  run = function(ctx)
    local parts = { ("-- shop %s\n"):format(ctx:get "version") }
    for _, path in ipairs(ctx:get "sources") do
      local name = path:match "([^/]+)%.lua$"
      parts[#parts + 1] = ("package.preload[%q] = load(%q)\n"):format(name, fs.read(path))
    end
    local archive = ctx:get "folder" .. "/shop.all"
    fs.write(archive, table.concat(parts))
    ctx:set("archive", archive)
  end,
})

local PublishOp = flow.op("PublishOp", {
  needs = { archive = "string", version = "string" },
  gives = { published = "string" },
  run = function(ctx)
    local name = ("shop-%s.lua"):format(ctx:get "version")
    fs.copy(ctx:get "archive", shop .. "/" .. name)
    ctx:set("published", name)
  end,
})

local CleanOp = flow.op("CleanOp", function(ctx)
  local folder = ctx:get("folder", "string?")
  if folder then fs.remove(folder, { recursive = true }) end
end)

local release = flow.graph("release")
  :needs { version = "string" }
  :add(CheckoutOp)
  :add(LintOp)
  :add_grouped(TestOp, { input = "sources", output = "reports", as = "source", max_concurrent = 4 })
  :add(BuildOp)
  :add(PublishOp, { after = { LintOp, TestOp } })
  :add_finally(CleanOp)

local run = release:run { version = "1.2" }
print(run.ok, run.data.published, table.concat(run.data.reports, ", "))

-- A mistake: the program is built, and nothing is published.
write("tax", "return a * 20 // 100", "assert(f(200) == 38, 'a wrong tax')")
run = release:run { version = "1.3" }
print(run.ok, run.data.published, run.error.op, run.error.stderr:match "a wrong tax")
print("published:", #fs.list(shop))
