---@meta flow.testing

---Runs your ops on a virtual clock, with other ops replaced: `require "flow.testing"`.
---@class flow.Testing
local testing = {}

---The options of a test.
---@class flow.TestOptions
---@field data any The initial data; for a machine, its state.
---@field replace table<string, flow.Op|table<string, any>|fun(ctx: flow.Ctx): any>? Replacements of ops, by name: an op, a function, or the data that the op gives. Replacements of a machine's steps, by name: an op, a function `(state, ctx)`, or the step's result.
---@field exec? "real"|async fun(argv: string[], options: flow.ExecOptions): string|flow.TestedProgram The replacement of programs: a function is called, which may wait; `"real"` runs them. Without it, a program is an error.
---@field http? "real"|table<string, string|flow.TestedResponse|async fun(request: flow.TestedRequest): string|flow.TestedResponse>|async fun(request: flow.TestedRequest): string|flow.TestedResponse The responses to requests, or functions that make them, by method and URL (`"GET https://api.example/items"`), or a function for all; a string is a body. `"real"` sends them. Without it, a request is an error.

---A request that a test responds to.
---@class flow.TestedRequest
---@field method string
---@field url string The whole URL with its query.
---@field headers table<string, string> The given lines of the header, by names in lower case.
---@field body? string
---@field upload? string The path of a file that is the body.
---@field parts? table[] The parts of a form with files: `{ name, body or path, type, filename }`.
---@field auth? table `{ user, password }`; a bearer token is in the header.

---The response of a test to a request.
---@class flow.TestedResponse
---@field status? integer From 200 to 599; 200 by default.
---@field headers? table<string, string|number|(string|number)[]>
---@field body? string Empty by default.
---@field json? any The body as a value that becomes JSON.
---@field delay? number Seconds of the test's clock until the response.
---@field phase? "resolve"|"connect"|"tls"|"send"|"wait"|"receive" The request breaks in this phase instead.

---The result of a replaced program.
---@class flow.TestedProgram
---@field status? integer From 0 to 255; 0 by default.
---@field stdout? string Empty by default.
---@field stderr? string Empty by default.

---The checks of a test. One that fails doesn't end the test.
---@class flow.Test
---@field name string The name of the test.
local Test = {}

---Compares two values; of tables it shows each key that is different.
---@param got any
---@param expected any
---@return boolean equal
function Test:equal(got, expected) end

---Calls a function, which must raise an error.
---@async
---@param pattern string A pattern of Lua that the text of the error has.
---@param fn async fun(...: any) The function.
---@param ... any Its arguments.
---@return any error The raised value; nil without one.
function Test:raises(pattern, fn, ...) end

---Looks for lines of a run's summary in their order; others may be between them.
---@param run flow.Run
---@param texts string[] Parts of lines.
---@return boolean found
function Test:lines(run, texts) end

---Compares a text with a file beside the test, which `flowlua --test --update` writes.
---@param text string
---@return boolean equal
function Test:snapshot(text) end

---Adds a test to the file that `flowlua --test` executes, where `test` is a global, too. In any other script the test is
---executed at once, and what fails is raised.
---@async
---@param name string Another one than those of other tests of the file.
---@param fn async fun(t: flow.Test) The test.
function testing.test(name, fn) end

---Runs an op, flow or machine to its end and returns the settled run.
---
---Sleeping takes no time, and `run.duration` is virtual. Everything started outside is paused during the
---test, and waiting for it is an error. A replaced op keeps its name, its declared data, retries and
---timeout.
---@param op flow.Op
---@param options? flow.TestOptions
---@return flow.Run
function testing.run(op, options) end

---Returns the digest of an op's code: 64 hexadecimal digits, which two ops with the same code have in
---common, also in different processes. It is what `--keep` compares to find out whether the code of an
---op has changed since it was kept.
---
---Comments, spacing, the names of local variables and the lines of code don't count, nor do the op's name
---and its policies. Constants, the values of upvalues, bound arguments, the functions and globals that the
---code uses, and the files of its modules do. It is an error if the code refers to something that has no
---content to compare, such as a task that hasn't ended.
---@param op flow.Op An op, flow or machine.
---@return string? digest nil for an op of which nothing is known but its name.
function testing.code_digest(op) end

return testing
