---@meta flow.testing

---Runs your ops on a virtual clock, with other ops replaced: `require "flow.testing"`.
---@class flow.Testing
local testing = {}

---The options of a test.
---@class flow.TestOptions
---@field data any The initial data; for a machine, its state.
---@field replace table<string, flow.Op|table<string, any>|fun(ctx: flow.Ctx): any>? Replacements of ops, by name: an op, a function, or the data that the op gives. Replacements of a machine's steps, by name: an op, a function `(state, ctx)`, or the step's result.
---@field exec? "real"|async fun(argv: string[], options: flow.ExecOptions): string|flow.TestedProgram What happens instead of programs: a function is called, which may wait; `"real"` runs them. Without it, a program is an error.

---The result of a replaced program.
---@class flow.TestedProgram
---@field status? integer From 0 to 255; 0 by default.
---@field stdout? string Empty by default.
---@field stderr? string Empty by default.

---Runs an op, flow or machine to its end and returns the settled run.
---
---Sleeping takes no time, and `run.duration` is virtual. Everything started outside is paused during the
---test, and waiting for it is an error. A replaced op keeps its name, its declared data, retries and
---timeout.
---@param op flow.Op
---@param options? flow.TestOptions
---@return flow.Run
function testing.run(op, options) end

return testing
