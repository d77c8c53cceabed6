---@meta flow.testing

---Runs ops of one's own on a virtual clock, with other ops replaced: `require "flow.testing"`.
---@class flow.Testing
local testing = {}

---How an op is run in a test.
---@class flow.TestOptions
---@field data any What the data bucket begins with; of a machine, its state.
---@field replace table<string, flow.Op|table<string, any>|fun(ctx: flow.Ctx): any>? What is executed in place of ops, by their names: an op, a function, or the data that they give. In place of steps of machines, by theirs: an op, a function `(state, ctx)`, or the step's result.

---Runs an op, flow or machine to its end and returns the settled run.
---
---A sleep takes no time, and `run.duration` is virtual. What was started outside stands still meanwhile:
---to wait for it is an error. A replaced op keeps its name, its declared data, retries and timeout.
---@param op flow.Op
---@param options? flow.TestOptions
---@return flow.Run
function testing.run(op, options) end

return testing
