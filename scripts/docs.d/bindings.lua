-- Compares the names of fields and options that the annotations know with those that the module
-- has. Functions and methods are compared by a test.
local flow, testing = require "flow", require "flow.testing"
local bindings = {}

local root = "Sources/FlowScripting/"

-- The Swift function for the fields of each class, and the fields that other functions handle.
local fields = {
  { "flow.Op", "Op/OpBindings.swift", "private static func property" },
  { "flow.Dispatcher", "Group/DispatcherBindings.swift", "func property" },
  { "flow.Limit", "Task/LimitBindings.swift", "func property" },
  { "flow.Run", "Run/RunBindings.swift", "func property", { "result" } },
  { "flow.Task", "Task/TaskBindings.swift", "func taskField", { "index" } },
  { "flow.Response", "HTTP/HTTPResponseBindings.swift", "func property" },
  { "flow.Ctx", "Op/ContextBindings.swift", "func property" },
}

-- A function that takes each table of options: it refuses an unknown field, and lists the known.
local function run() end
local options = {
  { "flow.RetryOptions", function(t) flow.op("AnOp", { run = run, retry = t }) end },
  { "flow.PolicyOptions", function(t) flow.new("f"):add(flow.new("g"), t) end },
  { "flow.WithOptions", function(t) flow.op("AnOp", run):with(t) end },
  { "flow.OpOptions", function(t) flow.op("AnOp", t) end },
  { "flow.WaitForOptions",
    function(t) flow.op("AnOp", function(ctx) ctx:wait_for("x", t) end):run():await() end },
  { "flow.DispatcherOptions", function(t) flow.dispatcher(t) end },
  { "flow.LimitOptions", function(t) flow.limit("a limit", t) end },
  { "flow.AwaitOptions", function(t) flow.resolved():await(t) end },
  { "flow.AnySucceedsOptions", function(t) flow.when_any_succeeds({ flow.resolved() }, t) end },
  { "flow.NextOptions", function(t) flow.resolved():next(run, t) end },
  { "flow.SummaryOptions", function(t) flow.new("f"):run():summary(t) end },
  { "flow.MachineOptions", function(t) flow.machine(t) end },
  { "flow.StepOptions", function(t) flow.step("a", t) end },
  { "flow.ExecOptions", function(t) flow.exec({ "true" }, t) end },
  { "flow.HTTPRequest", function(t) flow.http(t) end },
  { "flow.HTTPClientOptions", function(t) flow.http.client(t) end },
  { "flow.TestOptions", function(t) testing.run(flow.op("AnOp", run), t) end },
  { "flow.JSONReading", function(t) flow.json.decode("1", t) end },
  { "flow.JSONWriting", function(t) flow.json.encode(1, t) end },
  { "flow.CSVReading", function(t) flow.csv.rows("", t) end },
  { "flow.CSVWriting", function(t) flow.csv.encode({}, t) end },
  { "flow.SandboxOptions", function(t) flow.sandbox(t) end },
  { "flow.RemoteOptions", function(t) flow.remote(t) end },
  { "flow.FileListOptions", function(t) flow.fs.list("/", t) end },
  { "flow.FileStatOptions", function(t) flow.fs.stat("/", t) end },
  { "flow.FileRemoveOptions", function(t) flow.fs.remove("/", t) end },
  { "flow.FileWriteOptions", function(t) flow.fs.write("/", "", t) end },
  { "flow.FileLockOptions", function(t) flow.fs.lock("/", t) end },
  { "flow.FileWatchOptions", function(t) flow.fs.watch("/", t) end },
  { "flow.HashOptions", function(t) flow.fs.hash(t) end },
  { "flow.MachineDotOptions", function(t)
    flow.machine { name = "m", start = "a", flow.step("a", { run = run }) }:dot(t)
  end },
}

-- The names in the cases of a Swift function.
local function cases(path, place)
  local file <close> = assert(io.open(root .. path))
  local text = file:read "a"
  local first = assert(text:find(place, 1, true), ("%s: no '%s' any more"):format(path, place))
  local names = {}
  for line in text:sub(first):match("^.-\n  }\n"):gmatch "[^\n]+" do
    if line:find '^%s*case "' then
      for name in line:match("^(.-):"):gmatch '"([%w_]+)"' do names[name] = true end
    end
  end
  return names
end

-- The names in what a function says about an unknown one.
local function known_options(call)
  local ok, error = pcall(call, { zzqxjkvw = 1 })
  assert(not ok, "an unknown field was taken")
  local list = assert(tostring(error):match "known are (.*)$", tostring(error))
  local names = {}
  for name in list:gmatch "'([%w_]+)'" do names[name:match "[%w_]+$"] = true end
  return names
end

-- Compares the kinds of events of the engine with those that the annotation and the page name.
function bindings.check_kinds(entries, path, page, report)
  local file <close> = assert(io.open "Sources/FlowEngine/Base/Log/RunEvent.swift")
  local text = assert(file:read("a"):match "enum Kind:.-\n(.-)\n  }\n", "no kinds of events")
  local real = {}
  local function lower(letter) return "_" .. letter:lower() end
  for name in text:gmatch "\n%s*case `?(%w+)" do real[name:gsub("%u", lower)] = true end
  local function compare(where, line, known)
    for kind in pairs(known) do
      if not real[kind] then report(where, line, ("there is no event '%s'"):format(kind)) end
    end
    for kind in pairs(real) do
      if not known[kind] then report(where, line, ("the event '%s' is missing"):format(kind)) end
    end
  end
  for _, entry in ipairs(entries) do
    for _, field in ipairs(entry.name == "flow.Event" and entry.fields or {}) do
      if field.name == "kind" then
        local known = {}
        for kind in field.type:gmatch '"([%w_]+)"' do known[kind] = true end
        compare(path, field.line, known)
      end
    end
  end
  -- The first table of a page with the column `kind`.
  local known, first
  for number, line in ipairs(page.lines) do
    if line:find "^| kind |" then
      known, first = {}, number
    elseif first and line:find "^|" then
      for kind in line:match("^|([^|]*)|"):gmatch "`([%w_]+)`" do known[kind] = true end
    elseif first then
      break
    end
  end
  compare(page.path, assert(first, "no table of kinds"), known)
end

function bindings.check(entries, path, report)
  local count, classes = 0, {}
  for _, entry in ipairs(entries) do
    if entry.kind == "class" then classes[entry.name] = entry end
  end
  local function compare(name, real, elsewhere, with_parents)
    local class = assert(classes[name], "no class " .. name)
    local known, next = {}, class
    while next do
      for _, field in ipairs(next.fields) do
        if not field.name:find "^%[" then
          if next == class then count = count + 1 end
          known[field.name] = true
          if not real[field.name] and not elsewhere[field.name] then
            report(path, field.line, ("%s: there is no '%s'"):format(name, field.name))
          end
        end
      end
      next = with_parents and next.parent and classes[next.parent]
    end
    for field in pairs(real) do
      if not known[field] then report(path, class.line, ("%s lacks '%s'"):format(name, field)) end
    end
  end
  for _, row in ipairs(fields) do
    local elsewhere = {}
    for _, name in ipairs(row[4] or {}) do elsewhere[name] = true end
    compare(row[1], cases(row[2], row[3]), elsewhere)
  end
  for _, row in ipairs(options) do compare(row[1], known_options(row[2]), {}, true) end
  -- And that there is something to read about each.
  for _, entry in ipairs(entries) do
    if #entry.doc == 0 then
      report(path, entry.line, ("%s has no text"):format(entry.signature or entry.name))
    end
    if entry.kind == "function" then count = count + 1 end
  end
  return count
end

return bindings
