-- Several calls of data add up, and each table is read at the call.
local flow, check = require "flow", require "check"
local given = { a = 1 }
local blueprint = flow.new("data"):data(given):data { b = 2 }:data { a = 3 }
given.a, given.c = 9, 9
local run = blueprint:run()
check.equal(run.data.a, 3)
check.equal(run.data.b, 2)
check.equal(run.data.c, nil)
