-- run: examples/transfer.json
-- The machine of transfer.lua, entered after a step: the step's result and the state at that time
-- come from elsewhere, here from a file in JSON.
local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/lib/?.lua;" .. package.path
local json = require "json"

local path = assert(arg[1], "usage: transfer_continue.lua FILE.json")
local file <close> = assert(io.open(path))
local saved = json.decode(file:read "a")

local answers = { "continue" }
local transfer = require "transfer" (function(question)
  print(question, answers[1])
  return table.remove(answers, 1)
end)

local run = transfer:continue(saved.step, saved.result, saved.state)
run:wait()
print(run:summary())
print(run.ok, run.error)
