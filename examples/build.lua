-- run: release
--
-- A build that does only what has changed, as a graph with an op for each file: modules are
-- compiled, linked into one program, and tested, each as soon as what it needs is there. An op with
-- a cache is executed again when a file that it needs or includes has another content, or when a
-- file that it has made isn't what it was.
--
--   scripts/flowlua examples/build.lua [debug|release] DIR   builds DIR/*.lua into DIR/program
--   scripts/flowlua examples/build.lua [debug|release]       shows it on a folder of its own
local flow = require "flow"
local fs = flow.fs

local target, folder = arg[1] or "debug", arg[2] or fs.temp_dir()
flow.keep { store = folder .. "/.flowlua" }

local CompileOp = flow.op("CompileOp", {
  doc = "Compiles one module, with the headers that its lines `--include NAME` name.",
  needs = { source = "file", strip = "boolean" },
  gives = { object = "file" },
  cache = true,
  run = function(ctx)
    local source = ctx:get "source"
    local text, headers = fs.read(source), {}
    for name in text:gmatch "%-%-include (%S+)" do
      local header = folder .. "/" .. name
      -- It counts from now on, as the source does.
      ctx:depends_on(header)
      headers[name] = fs.read(header)
    end
    local code = assert(load(text:gsub("%-%-include (%S+)", headers), "@" .. source))
    fs.write(source .. "c", string.dump(code, ctx:get "strip"))
    ctx:set("object", source .. "c")
    ctx:log("compiled " .. source:match "[^/]+$")
  end,
})

-- Links the objects of these modules.
local function link_op(modules)
  local needs = { output = "string" }
  for _, name in ipairs(modules) do needs[name .. ".luac"] = "file" end
  return flow.op("LinkOp", {
    needs = needs,
    gives = { program = "file" },
    cache = true,
    run = function(ctx)
      local parts = {}
      for i, name in ipairs(modules) do
        local object = fs.read(ctx:get(name .. ".luac"))
        parts[i] = ("package.preload[%q] = load(%q)\n"):format(name, object)
      end
      fs.write(ctx:get "output", table.concat(parts) .. "return require 'main'\n")
      ctx:set("program", ctx:get "output")
      ctx:log("linked " .. table.concat(modules, ", "))
    end,
  })
end

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

local function run(title)
  local build, modules = flow.graph("build", { max_concurrent = 4 }), {}
  local data = { output = folder .. "/program", strip = target == "release" }
  for i, source in ipairs(fs.list(folder, { match = "*.lua" })) do
    local name = source:match "([^/]+)%.lua$"
    modules[i], data[name .. ".lua"] = name, source
    build:add(CompileOp:with {
      name = "CompileOp " .. name, keys = { source = name .. ".lua", object = name .. ".luac" },
    })
  end
  local built = build:add(link_op(modules)):add(TestOp):run(data)
  local lines = {}
  for _, event in ipairs(built:events()) do
    if event.kind == "log" then lines[#lines + 1] = "  " .. event.message end
  end
  -- Items that execute at once end in any order.
  table.sort(lines)
  print(title)
  for _, line in ipairs(lines) do print((line:gsub("([('])/.*/", "%1"))) end
  if not built.ok then error(tostring(built.error), 0) end
end

if arg[2] then return run(target) end

local function edit(name, text) fs.write(folder .. "/" .. name .. ".lua", text) end
fs.write(folder .. "/words.h", "local hello = 'Hello'")
edit("greeting", "--include words.h\nreturn function(name) return hello .. ', ' .. name .. '!' end")
edit("shout", "return function(text) return text:upper() end")
edit("main", "return require 'shout' (require 'greeting' 'world')")
run "first build"
run "nothing has changed"
fs.write(folder .. "/words.h", "local hello = 'Good day'")
run "a header has changed"
edit("main", "return require 'shout' (require 'greeting' 'moon')")
run "a module has changed"
edit("shout", "return function(text) return text:upper() end -- a comment")
run "the object is the same"
fs.remove(folder .. "/program")
run "the program is missing"
