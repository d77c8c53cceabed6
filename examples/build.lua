-- run: release
--
-- A build that does only what has changed: modules are compiled, linked into one program, and
-- tested. An op with a cache is executed again when a file that it needs has another content, or
-- when a file that it has made isn't what it was.
--
--   scripts/flowlua examples/build.lua [debug|release] DIR   builds DIR/*.lua into DIR/program
--   scripts/flowlua examples/build.lua [debug|release]       shows it on a folder of its own
local flow = require "flow"
local fs = flow.fs

local target, folder = arg[1] or "debug", arg[2] or fs.temp_dir()
flow.keep { store = folder .. "/.flowlua" }

local CompileOp = flow.op("CompileOp", {
  doc = "Compiles one module; a mistake in it names file and line.",
  needs = { source = "file", strip = "boolean" },
  gives = { object = "file" },
  primary_input = "source",
  cache = true,
  run = function(ctx)
    local source = ctx:get "source"
    local code = assert(load(fs.read(source), "@" .. source))
    fs.write(source .. "c", string.dump(code, ctx:get "strip"))
    ctx:set("object", source .. "c")
    ctx:log("compiled " .. source:match "[^/]+$")
  end,
})

local LinkOp = flow.op("LinkOp", {
  needs = { objects = "file[]", program = "string" },
  gives = { program = "file" },
  cache = true,
  run = function(ctx)
    local names, parts = {}, {}
    for i, object in ipairs(ctx:get "objects") do
      names[i] = object:match "([^/]+)%.luac$"
      parts[i] = ("package.preload[%q] = load(%q)\n"):format(names[i], fs.read(object))
    end
    fs.write(ctx:get "program", table.concat(parts) .. "return require 'main'\n")
    ctx:log("linked " .. table.concat(names, ", "))
  end,
})

local TestOp = flow.op("TestOp", {
  doc = "Runs what was built, and gives up on it after a while.",
  needs = { program = "file" },
  timeout = 60,
  cache = true,
  run = function(ctx)
    local test = flow.exec { "lua5.4", "-e", ("print((dofile %q))"):format(ctx:get "program") }
    ctx:log("it prints " .. test:await().stdout:gsub("\n$", ""))
  end,
})

local build = flow.new("build")
  :add_grouped(CompileOp, { input = "sources", output = "objects", max_concurrent = 4 })
  :add(LinkOp):add(TestOp)

local function run(title)
  local built = build:run {
    sources = fs.list(folder, { match = "*.lua" }),
    program = folder .. "/program",
    strip = target == "release",
  }
  local lines = {}
  for _, event in ipairs(built:events()) do
    if event.kind == "log" then lines[#lines + 1] = "  " .. event.message end
  end
  -- Items that execute at once end in any order.
  table.sort(lines)
  print(title)
  for _, line in ipairs(lines) do print((line:gsub("%(/.*/", "("))) end
  if not built.ok then error(tostring(built.error), 0) end
end

if arg[2] then return run(target) end

local function edit(name, text) fs.write(folder .. "/" .. name .. ".lua", text) end
edit("greeting", "return function(name) return 'Hello, ' .. name .. '!' end")
edit("shout", "return function(text) return text:upper() end")
edit("main", "return require 'shout' (require 'greeting' 'world')")
run "first build"
run "nothing has changed"
edit("greeting", "return function(name) return 'Good day, ' .. name .. '!' end")
run "a module has changed"
edit("shout", "return function(text) return text:upper() end -- a comment")
run "the object is the same"
fs.remove(folder .. "/program")
run "the program is missing"
