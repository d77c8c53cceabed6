-- Tests of hello.lua, for flowlua --test. Each runs the flow on a clock of its own, on which
-- waiting takes no time.
local testing = require "flow.testing"
local party = require "hello"

local tests = {}

function tests.all_guests_are_invited(t)
  local run = testing.run(party)
  t:equal(run.error, nil)
  t:equal(#run.data.letters, 3)
  t:equal(run.data.letters[2], "Dear Grace, please come!")
  t:equal(run.duration, 0.5)
end

-- Ops are replaced by the data that they give, or by functions. The retries stay those of the op.
function tests.a_letter_is_tried_three_times(t)
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
  t:equal(run.ok, false)
  t:equal(run.error.message, "the pen is broken")
  t:equal(attempts, 3)
end

return tests
