-- A release checklist that asks on the terminal: a machine, so that an answer can lead back, or
-- nowhere. Its answers can also come from a file:
--
--   scripts/flowlua examples/checklist.lua
--   scripts/flowlua examples/checklist.lua <examples/checklist.input
local flow = require "flow"
local on, forward, back = flow.on, flow.forward, flow.back

-- While the question waits for its answer, everything else would continue.
local test = flow.exec({ "test", "-t", "0" }, { stdin = "inherit", check = false }):await()
local is_terminal = test.status == 0

local function ask(question)
  io.write(question, " ")
  local answer = flow.read "l" or error("the answers have ended", 0)
  if not is_terminal then print(answer) end
  return answer
end

-- A step that is a question of yes or no.
local function confirm(question)
  return function(state)
    local answer = ask(question:gsub("VERSION", state.version) .. " [y/n]")
    if answer == "y" then return {} end
    return { event = answer == "n" and "no" or "unclear" }
  end
end

local CheckTagOp = flow.op("CheckTagOp", {
  doc = "Looks whether the version was released already.",
  needs = { version = "string" },
  run = function(ctx)
    local released = { ["1.0.0"] = true, ["1.1.0"] = true }
    if released[ctx:get "version"] then ctx:set("event", "taken") end
  end,
})

local checklist = flow.machine {
  name = "release",
  start = "version",
  -- The event is what a step returns; all else is kept in the state.
  emit = function(result) return result.event end,
  reduce = function(state, result)
    local known = { version = result.version or state.version, aborted = result.aborted }
    return flow.continue(known)
  end,
  flow.any_step { on("unclear", flow.stay()), on("no", forward "abort") },
  flow.step("version", {
    run = function()
      local version = ask "Which version?"
      return { version = version, event = not version:find "^%d+%.%d+%.%d+$" and "unclear" or nil }
    end,
    flow.next(forward "tag"),
  }),
  flow.step("tag", {
    run = CheckTagOp,
    on("taken", forward "again"),
    flow.next(forward "changelog"),
  }),
  flow.step("again", {
    run = function(state) print(state.version .. " is released already.") return {} end,
    flow.next(back "version"),
  }),
  flow.step("changelog", {
    run = confirm "Does the changelog describe VERSION?",
    on("no", forward "write"),
    flow.next(forward "tests"),
  }),
  flow.step("write", {
    run = function() ask "Then write it, and press Enter." return {} end,
    flow.next(back "changelog"),
  }),
  flow.step("tests", { run = confirm "Have all tests passed?", flow.next(forward "publish") }),
  flow.step("publish", { run = confirm "Publish VERSION?", flow.next(forward "done") }),
  flow.step("done", {
    run = function(state) print("Published " .. state.version .. ".") return {} end,
  }),
  flow.step("abort", {
    run = function() print "Nothing was published." return { aborted = true } end,
  }),
}

local run = checklist:run()
if not run.ok then error(tostring(run.error), 0) end
for _, event in ipairs(run:events()) do
  if event.kind == "transition" then print(event.message) end
end
os.exit(run.result.aborted and 1 or 0, true)
