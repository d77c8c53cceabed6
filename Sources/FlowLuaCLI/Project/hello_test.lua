-- Tests of hello.lua. Each runs the flow on a clock of its own, on which waiting takes no time.
local testing = require "flow.testing"
package.path = (arg[0]:match "^(.*/)" or "./") .. "?.lua;" .. package.path
local party = require "hello"

local tests = {}

function tests.all_guests_are_invited()
  local run = testing.run(party)
  assert(run.ok, run.error)
  assert(#run.data.letters == 3)
  assert(run.data.letters[2] == "Dear Grace, please come!")
  assert(run.duration == 0.5)
end

-- Ops are replaced by the data that they give, or by functions. The retries stay those of the op.
function tests.a_letter_is_tried_three_times()
  local attempts = 0
  local run = testing.run(party, {
    replace = {
      ListOp = { guests = { "Ada" } },
      InviteOp = function(ctx)
        attempts = ctx.attempt
        error("the pen is broken", 0)
      end,
    },
  })
  assert(not run.ok and run.error.message == "the pen is broken")
  assert(attempts == 3)
end

local names = {}
for name in pairs(tests) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  tests[name]()
  print("passed: " .. name)
end
