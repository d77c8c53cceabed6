-- A state machine: asks on the terminal, or replies by itself where there is none.
local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/lib/?.lua;" .. package.path

local flow = require "flow"

local test = flow.exec({ "test", "-t", "0" }, { stdin = "inherit", check = false }):await()
local is_terminal = test.status == 0
local answers = { "twenty", "20", "200", "cheap", "editAmount", "300", "express", "continue" }

local function ask(question, choices)
  io.write(question, choices and " (" .. table.concat(choices, ", ") .. ")" or "", " ")
  if not is_terminal then
    local answer = table.remove(answers, 1)
    print(answer)
    return answer
  end
  local answer = flow.read "l" or os.exit(1)
  for _, choice in ipairs(choices or { answer }) do
    if choice == answer then return answer end
  end
  return ask(question, choices)
end

local transfer = require "transfer" (ask)
local run = transfer:run { country = "DE" }
print(run:summary())
print(("amount %g, fee %g"):format(run.result.amount, run.result.fee))
print(transfer:dot())
