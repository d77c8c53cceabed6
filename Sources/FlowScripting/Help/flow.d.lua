---@meta flow

-- The one source of what is known about the module: editors read this file, `help` and completion
-- read it in a session, and the reference of the documentation is made of it by scripts/docs.
-- A test compares its names with those of the running module.

---Named operations, flows, machines, runs and tasks.
---
---Every misuse raises an error of kind `usage`: its message begins with the script's `file:line:`
---and names the function, the argument, what was expected and what was given. In tables of options
---an unknown field is such an error. Times are seconds, as numbers; they are finite and not
---negative.
---@class flow
---@field ops flow.Ops The ops that are written in Swift, by name.
---@field checking boolean Whether runs are checked instead of executed, as with `--check`.
local flow = {}

---A name in the data bucket with its value.
---@alias flow.Data table<string, any>

---What a value has to be: `"any"`, `"boolean"`, `"string"`, `"number"` (both subtypes),
---`"integer"`, `"float"`, `"table"`, `"function"`, `"userdata"`, `"thread"`, the `__name` of a
---metatable, `"T[]"` (a list without holes), `"T?"` (may be absent), `"A|B"`, or a function that
---tells; its second result names the type in the line of a mismatch. The `?` binds to the whole
---union.
---@alias flow.Type string|fun(value: any): boolean, string?

---How a task stands.
---@alias flow.State
---| "pending" # It goes on.
---| "succeeded" # It has a result.
---| "failed" # It has an error.
---| "cancelled" # It has an error of kind `cancelled`.

---What kind of error it is.
---@alias flow.ErrorKind
---| "error" # Something was raised, or `ctx:fail` was called.
---| "insufficient_input" # A key that was needed isn't in the data bucket.
---| "mismatched_input" # A value that was needed is of another type.
---| "missing_output" # A declared output wasn't set.
---| "mismatched_output" # A declared output is of another type.
---| "timeout" # It took longer than its `timeout`.
---| "cancelled" # It was asked to stop.
---| "stalled" # Nothing could make progress any more.
---| "usage" # A function was used wrongly.

---Where an op's function runs: on the main thread, or in a Lua state of its own, in parallel. Code
---for a worker travels with its upvalues, as they are when the op is made; values come and go as
---copies, and what can't travel is an error that names it. In a worker, globals are the standard
---ones.
---@alias flow.OpThread "main"|"worker"

---Where a continuation runs: posted to the main loop, at once on completion, or in a Lua state of
---its own, which gets a read-only copy of the settled task. Without it: at once, until 20 deep,
---then posted.
---@alias flow.Thread "main"|"immediate"|"worker"

---How often an op is tried. Retried are errors of the kinds `error`, `timeout` and
---`missing_output`. The data bucket isn't rolled back between attempts.
---@class flow.RetryOptions
---@field attempts integer How many attempts there are in all, at least 1.
---@field delay? number|async fun(error: flow.Error, attempt: integer): number Seconds before the second attempt, 0 without it; or a function that returns them for each, from the error and the number of the attempt that has failed.
---@field factor? number What the delay is multiplied by each time; 1 without it.
---@field max_delay? number The longest delay in seconds; none without it, but 60 for `retry_after` of an error.
---@field jitter? number A share of the delay, from 0 to 1, by which it is drawn longer or shorter at random; 0 without it.
---@field when? async fun(error: flow.Error, attempt: integer): boolean Says whether there is another attempt, where the kind of the error allows one.

---The policy of one place in a flow.
---@class flow.PolicyOptions
---@field retry? integer|flow.RetryOptions A number of attempts, or more exactly.
---@field timeout? number Seconds per attempt, greater than 0. It ends an op that waits and one that is busy.
---@field grace? number Seconds that all cleanups together have once it was stopped; `math.huge` for no limit. 30 without it, or what `--grace` says.
---@field thread? flow.OpThread Of an op written in Lua.

---What `Op:with` changes.
---@class flow.WithOptions: flow.PolicyOptions
---@field name? string
---@field primary_input? string
---@field primary_output? string

---The full form of an op.
---@class flow.OpOptions: flow.PolicyOptions
---@field run async fun(ctx: flow.Ctx, ...: any): any What it does. It ends when this returns; when it returns a task, with that task.
---@field doc? string What it is for; `help` shows it.
---@field needs? table<string, flow.Type> What has to be in the data bucket: checked before `run` is called.
---@field gives? table<string, flow.Type> What `run` has to set: checked after it.
---@field primary_input? string The key under which a group gives it an item; without it the only one of `needs`.
---@field primary_output? string The key whose value a group collects; without it the only one of `gives`.

---How a group works.
---@class flow.DispatcherOptions
---@field input string The key of the list. A missing key, or a value that is no list, fails the group as an input error.
---@field output? string The key of the list of results, in the order of the input; nothing is collected without it.
---@field max_concurrent? integer How many items execute at the same time; 3 without it.
---@field allow_failure? boolean Whether the group continues when an item fails; failed items are left out of the output, unless there is an `absent`.
---@field allow_empty? boolean Whether an empty list is no error of kind `insufficient_input`.
---@field failures? string The key of a list of `{ index, input, error }`, one for each failed item.
---@field as? string The key under which each op finds its item; without it the op's primary input.
---@field collect? string The key whose value becomes the result; without it the op's primary output.
---@field absent? any The value that stands in the output for an item without a result, so that results align with items: for a failed one, and for one that succeeded without an output that is declared optional. Without it both are left out.

---Where a continuation runs.
---@class flow.NextOptions
---@field thread? flow.Thread

---How a summary is written.
---@class flow.SummaryOptions
---@field time? "iso" Times as `2026-01-31T16:17:18.123Z` in place of `4:17:18 PM`.
---@field durations? boolean Whether lines of an end tell how long it took, in seconds.
---@field full? boolean Whether strings are shown whole, however long; else 120 characters of each value.

---How a machine is drawn.
---@class flow.MachineDotOptions
---@field rankdir? "LR"|"RL"|"TB"|"BT" The direction; `"LR"` without it.
---@field shape? string The shape of a step; `"box"` without it.
---@field strict? boolean Whether several edges of one kind become one; true without it.

---How a program is run.
---@class flow.ExecOptions
---@field stdin? string What the program reads; nothing without it.
---@field cwd? string Its working directory; that of flowlua without it.
---@field env? table<string, string|false> Changes to the environment: a string sets a variable, false removes it.
---@field timeout? number After so many seconds of real time it is stopped, and fails with an error of kind `timeout`.
---@field check? boolean Whether a status other than 0 is a failure; true without it.
---@field capture? boolean Whether its output is collected; true without it, else it goes where flowlua's goes.

---How a program ended.
---@class flow.ExecResult
---@field status integer The exit status; 128 and the number of the signal when one ended it.
---@field signal? integer The signal that ended it.
---@field stdout? string All it wrote, as bytes; nil with `capture = false`.
---@field stderr? string

---What `flow.machine` is called with: fields, and a list of `flow.step` and `flow.any_step`.
---@class flow.MachineOptions: flow.PolicyOptions
---@field name string
---@field start string The first step.
---@field emit? async fun(result: any, state: any): string? The event that a step's result is, if it is one.
---@field reduce? async fun(state: any, result: any): flow.Reduction Makes the next state of a result. Without it the result becomes the state, and nil leaves it.
---@field navigate? async fun(transition: flow.Transition, state: any, ctx: flow.Ctx): any Performs all steps, in place of their `run`.
---@field transition? async fun(step: string, result: any, state: any): flow.Transition? Says where to go, in place of `on` and `next`; nil ends the machine with its state.
---@field any? "first"|"last" Whether the any-step is asked before a step's own handlers; `"last"` without it.
---@field max_transitions? integer After so many transitions it fails; 10000 without it.
---@field doc? string What it is for.
---@field needs? table<string, flow.Type> As of an op.
---@field gives? table<string, flow.Type> As of an op.
---@field primary_input? string As of an op.
---@field primary_output? string As of an op.
---@field [integer] flow.Step

---Where a machine begins.
---@class flow.MachineStartOptions
---@field at? string The step to begin with; without it the last one of `history`, or else the machine's start.
---@field history? string[] The steps entered so far, as `run.history` and `ctx.history` have them: where `flow.back` leads. `at` is added unless it is the last of them. Their results aren't known, so that `flow.retry` performs the step again.

---A step of a machine: what performs it, and a list of `flow.on` and `flow.next`.
---@class flow.StepOptions
---@field run? flow.Op|async fun(state: any, ctx: flow.Ctx): any An op, flow or machine, which gets the state as its data, or a function.
---@field final? boolean Whether the machine ends after it, even where the any-step has a `flow.next`.
---@field [integer] flow.Handler

---What `flow:check` finds.
---@class flow.Finding
---@field severity "error"|"warning"
---@field op string The op, or the flow, that it is about.
---@field message string

---Something that happened in a run.
---@class flow.Event
---@field time number Seconds since the run began.
---@field kind "start"|"finish"|"log"|"set"|"replace"|"remove"|"retry"|"group"|"case"|"transition"|"progress"|"state"
---@field op string The name of the op it is about.
---@field index? integer The op's index in a group, from 1 on.
---@field attempt integer Which attempt at the op, from 1 on.
---@field message? string Of `log` what was said; of `finish`, `retry`, `group`, `case`, `transition` and `state` the line's text.
---@field key? string Of `set`, `replace` and `remove`.
---@field value? string The text of what was set, or of a machine's new state; of a secret `<redacted>`.
---@field old_value? string Of `replace` the text of what stood there.
---@field done? number Of `progress`.
---@field total? number Of `progress`.

---An op: a named, reusable operation. Calling it binds arguments, which `run` gets behind `ctx`; an
---op that needs none is used as it is. Flows and machines are ops too, but take no arguments.
---@class flow.Op
---@field name string What lines and errors call it.
---@field doc string? What it is for.
---@field needs table<string, flow.Type> What it needs, in the form in which that was written; a copy. A flow has a method of this name instead.
---@field gives table<string, flow.Type> What it gives, in the same way.
---@field primary_input string? The key under which a group gives it an item: the one that was given, or the only one of `needs`.
---@field primary_output string? The key whose value a group collects: the one that was given, or the only one of `gives`.
---@field retry flow.RetryOptions? How often it is tried; a copy with all fields.
---@field timeout number? Seconds per attempt.
---@field grace number? Seconds for all cleanups together once the op is stopped.
---@field thread flow.OpThread Where its function runs.
---@overload fun(...: any): flow.Op
local Op = {}

---Starts it alone, up to its first wait.
---@param data? flow.Data What the data bucket begins with.
---@return flow.Run run
function Op:start(data) end

---Starts it alone and waits until it has settled. Its failure isn't raised: look at `run.ok` or
---`run.error`.
---@async
---@param data? flow.Data What the data bucket begins with.
---@return flow.Run run
function Op:run(data) end

---The same op, flow or machine with another name or policy.
---@generic T: flow.Op
---@param self T
---@param options flow.WithOptions
---@return T op
function Op:with(options) end

---Ops in order, with cases and groups, over one data bucket. A flow is an op, and a blueprint: it
---can be started many times, also at the same time. The builder's functions change the flow and
---return it; a run keeps the blueprint that it began with. A flow inside a flow works on the same
---bucket.
---@class flow.Flow: flow.Op
local Flow = {}

---Declares what data it needs; several calls add up. Without an argument it returns what is declared,
---or else what the op needs that is the flow's only step, as a copy.
---@param needs? table<string, flow.Type>
---@return flow.Flow self
---@overload fun(self: flow.Flow): table<string, flow.Type>
function Flow:needs(needs) end

---Declares what data it gives: checked when its last step has succeeded. Several calls add up; without
---an argument it returns what is declared, as `needs` does.
---@param gives? table<string, flow.Type>
---@return flow.Flow self
---@overload fun(self: flow.Flow): table<string, flow.Type>
function Flow:gives(gives) end

---Says under which key a group gives the flow an item, and whose value it collects; nil leaves either.
---By default these are the only key that it needs and gives, or else those of the op that is the
---flow's only step.
---@param input? string
---@param output? string
---@return flow.Flow self
function Flow:primary(input, output) end

---Gives data to begin with; several calls add up. Values given to `start` and `run` take precedence;
---inside another flow it fills absent keys only. Tables without a metatable are copied for each run,
---nested ones included, so that no run changes the data of the next one.
---@param data flow.Data
---@return flow.Flow self
function Flow:data(data) end

---Adds an op, flow or machine as the next step, with a policy for this place alone.
---@param op flow.Op
---@param policy? flow.PolicyOptions
---@return flow.Flow self
function Flow:add(op, policy) end

---Adds an op that is executed for each item of a list, a few at a time. Each gets a bucket of its
---own, which holds the item and reads through to the flow's; what it sets isn't logged. Without
---`allow_failure` the first failure cancels what runs, starts nothing more, and fails the group.
---@param op flow.Op
---@param dispatcher flow.Dispatcher|flow.DispatcherOptions
---@return flow.Flow self
function Flow:add_grouped(op, dispatcher) end

---Adds several ops that are executed at the same time, over the same data. The first failure stops
---the others.
---@param ... flow.Op
---@return flow.Flow self
function Flow:add_parallel(...) end

---Adds an op that is executed at the end, after failure, cancellation and timeout too. A failing
---one fails a flow that had succeeded.
---@param op flow.Op
---@param policy? flow.PolicyOptions
---@return flow.Flow self
function Flow:add_finally(op, policy) end

---Begins a branch, up to the next `case`, `otherwise` or `combine`. It is taken, as the first that
---matches, when the key's value is this string, or the predicate says so. When none matches, and
---there is no `otherwise`, the flow ends early and successfully. Cases don't nest: put a flow
---inside a case instead.
---@param key string|async fun(data: flow.Data): boolean
---@param value? string With a key only.
---@return flow.Flow self
function Flow:case(key, value) end

---Begins the branch that is taken when no case matches.
---@return flow.Flow self
function Flow:otherwise() end

---Joins the branches.
---@return flow.Flow self
function Flow:combine() end

---Has a function called before the first op of each run; it may wait, and several add up. Its error
---fails the run.
---@param fn async fun(run: flow.Run)
---@return flow.Flow self
function Flow:will_start(fn) end

---Has a function called when a run has settled, before anything that waits for the run goes on; it
---may wait, and several add up. Its error is reported like a failure that nobody observed.
---@param fn async fun(run: flow.Run)
---@return flow.Flow self
function Flow:did_finish(fn) end

---A flow of its own with the same steps.
---@return flow.Flow copy
function Flow:copy() end

---Finds, without running anything, keys that nothing gives, types that don't fit, cases that can't
---match and names without the suffix `Op`.
---@param data? flow.Data What it would be started with.
---@return flow.Finding[] findings In the order of the steps; empty when there is nothing to say.
function Flow:check(data) end

---Draws it as a graph in the DOT language.
---@return string dot Ends in a newline.
function Flow:dot() end

---Draws it as a graph for Mermaid.
---@return string mermaid Ends in a newline.
function Flow:mermaid() end

---A state machine over steps. A machine is an op; alone it is started with a state, any value, and
---inside a flow its state begins as the bucket's data. When it finishes with a table, that table's
---string keys are set in the bucket.
---@class flow.Machine: flow.Op
local Machine = {}

---Starts it with a state, up to its first wait: at its start, or at a saved step.
---@param state? any
---@param options? flow.MachineStartOptions
---@return flow.Run run Its `result` is what the machine finishes with.
function Machine:start(state, options) end

---Starts it with a state and waits until it has settled.
---@async
---@param state? any
---@param options? flow.MachineStartOptions
---@return flow.Run run
function Machine:run(state, options) end

---Starts it after a step, whose result comes from elsewhere, such as a server. The history begins
---with that step, unless `options` has one: then it is that, and the step is added if it isn't the last.
---@param step string
---@param result any
---@param state any
---@param options? { history?: string[] }
---@return flow.Run run
function Machine:continue(step, result, state, options) end

---Returns what would follow a step, and performs nothing: only `reduce`, `emit` and `transition` are
---called. Where the machine would fail, such as on an event that no step handles, it raises.
---@async
---@param step string
---@param result any
---@param state any The state before the result is reduced.
---@return flow.Transition? transition nil when the machine ends; its `kind` is `"retry"` where `reduce` returned that.
---@return any state The new state, or what the machine finishes with.
function Machine:transition(step, result, state) end

---Looks for steps that may have been forgotten, and performs nothing: with `reduce`, a step that has no
---way on and isn't marked `final = true` is a warning.
---@return flow.Finding[] findings In the order of the steps.
function Machine:check() end

---Draws it as a graph in the DOT language.
---@param options? flow.MachineDotOptions
---@return string dot Ends in a newline.
function Machine:dot(options) end

---Draws it as a graph for Mermaid.
---@return string mermaid Ends in a newline.
function Machine:mermaid() end

---Something that goes on or has settled, with one outcome. A task is closable:
---`local t <close> = flow.spawn(f)` cancels it and waits for its end when the scope is left. A
---failure that nobody observed is reported at the end of the script; `await`, a continuation, and
---reading `error`, `state`, `faulted` or `result` observe it, `wait` doesn't.
---@class flow.Task<T>
---@field state flow.State
---@field completed boolean Whether it has settled.
---@field faulted boolean Whether it has failed.
---@field cancelled boolean Whether it was cancelled.
---@field result T? Of a task that has succeeded.
---@field error flow.Error? Of a task that has failed or was cancelled.
---@field index integer? Of `flow.when_any_finish`: which one was first, from 1 on.
local Task = {}

---Waits for the result. Raises the task's error when it fails or is cancelled, and the waiter's own
---cancellation, timeout or Ctrl-C. It works anywhere: in the main chunk, an op, a coroutine, inside
---`pcall`; inside a callback of a C function (`table.sort`, `string.gsub`) while no other wait of
---that kind is going on.
---@async
---@generic T
---@param self flow.Task<T>
---@return T result
function Task:await() end

---Waits until it has settled, or the time is up. Never raises the task's error, only the waiter's
---own.
---@async
---@param timeout? number Seconds.
---@return boolean settled
function Task:wait(timeout) end

---Asks it, and all that it has started, to stop. What waits for it meets an error of kind
---`cancelled`; code that goes on regardless is closed after a grace period of 1 second.
---@param reason? string
---@return boolean was_pending
function Task:cancel(reason) end

---Goes on with `fn(task)`, whatever the outcome. The new task ends as what `fn` returns: a task is
---followed, a value wrapped; an error fails it. Here and in the four below a thread may come first, in
---place of `opts`.
---@generic T, U
---@param self flow.Task<T>
---@param fn async fun(task: flow.Task<T>): U|flow.Task<U>
---@param opts? flow.NextOptions
---@return flow.Task<U> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(task: flow.Task<T>): U|flow.Task<U>): flow.Task<U>
function Task:next(fn, opts) end

---Goes on with `fn(result)` after a success, as `next` does; other outcomes pass through.
---@generic T, U
---@param self flow.Task<T>
---@param fn async fun(result: T): U|flow.Task<U>
---@param opts? flow.NextOptions
---@return flow.Task<U> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(result: T): U|flow.Task<U>): flow.Task<U>
function Task:next_on_success(fn, opts) end

---Goes on with `fn(error)` after a failure, as `next` does; a success and a cancellation pass
---through.
---@generic T, U
---@param self flow.Task<T>
---@param fn async fun(error: flow.Error): U|flow.Task<U>
---@param opts? flow.NextOptions
---@return flow.Task<T|U> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(error: flow.Error): U|flow.Task<U>): flow.Task<T|U>
function Task:next_on_error(fn, opts) end

---Calls `fn(task)` at the end of a chain. The outcome stays what it was, once `fn` is done; an
---error in `fn` fails it.
---@generic T
---@param self flow.Task<T>
---@param fn async fun(task: flow.Task<T>)
---@param opts? flow.NextOptions
---@return flow.Task<T> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(task: flow.Task<T>)): flow.Task<T>
function Task:finally(fn, opts) end

---Calls `fn(result)` at the end of a chain that has succeeded. The outcome stays what it was; an
---error in `fn` fails it.
---@generic T
---@param self flow.Task<T>
---@param fn async fun(result: T)
---@param opts? flow.NextOptions
---@return flow.Task<T> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(result: T)): flow.Task<T>
function Task:finally_on_success(fn, opts) end

---A program. Once it has ended, the fields of its result, or of its error, are those of the task;
---before, reading one is an error.
---@class flow.ExecTask: flow.Task<flow.ExecResult>
---@field status integer? The exit status; 128 and the number of the signal when one ended it. Nil when the program couldn't be started.
---@field signal integer? The signal that ended it.
---@field stdout string? All it wrote, as bytes; nil with `capture = false`.
---@field stderr string?

---A started op, flow or machine: a task with data, a log and a summary. It settles when all that it
---has started has ended, cleanups included.
---@class flow.Run: flow.Task<flow.Data>
---@field name string What was started.
---@field id integer Each run of a process has its own.
---@field data flow.Data A copy of its data bucket, with secrets as plain values. Setting a field is an error, as the run would never see it; `pairs` walks it.
---@field ok boolean Whether it has succeeded. Reading it observes a failure.
---@field duration number Seconds from its begin to its end, or until now.
---@field finished_early boolean Whether it ended because no case matched.
---@field history string[]? Of a machine the steps that it has entered, the present or last one included.
---@field result any Its data, as in `data`; of a machine what it has finished with.
local Run = {}

---What ran and when, what it wrote and said, and why it failed: one line per event.
---@param options? flow.SummaryOptions
---@return string summary Ends in a newline.
function Run:summary(options) end

---The events of its log, in the order in which they happened.
---@return flow.Event[] events
function Run:events() end

---Draws what was started in the DOT language, with what became of it.
---@return string dot Ends in a newline.
function Run:dot() end

---What an op works with. Once the op has finished, each use of it is an error.
---@class flow.Ctx
---@field name string The op's display name, `UploadOp #3` in a group.
---@field attempt integer Which attempt this is, from 1 on.
---@field index integer? Which item of a group this is, from 1 on.
---@field run flow.Run The run that the op belongs to.
---@field error flow.Error? In a cleanup what the op is ending with, in a final step what its flow is; nil after success.
---@field history string[]? In a function of a machine the steps that it has entered, the present one included; `start` takes it to continue there.
local Ctx = {}

---A value of the data bucket. Without one the op finishes here, with an error of kind
---`insufficient_input`; with one of another type, with `mismatched_input`. No check is needed
---behind it.
---@param key string
---@param type? flow.Type With `"T?"` an absent value is nil.
---@return any value
---@overload fun(self: flow.Ctx, key: string, type: "string"): string
---@overload fun(self: flow.Ctx, key: string, type: "integer"): integer
---@overload fun(self: flow.Ctx, key: string, type: "number"|"float"): number
---@overload fun(self: flow.Ctx, key: string, type: "boolean"): boolean
---@overload fun(self: flow.Ctx, key: string, type: "table"): table
---@overload fun(self: flow.Ctx, key: string, type: "string[]"): string[]
---@overload fun(self: flow.Ctx, key: string, type: "string?"): string?
---@overload fun(self: flow.Ctx, key: string, type: "integer?"): integer?
---@overload fun(self: flow.Ctx, key: string, type: "number?"|"float?"): number?
---@overload fun(self: flow.Ctx, key: string, type: "boolean?"): boolean?
---@overload fun(self: flow.Ctx, key: string, type: "table?"): table?
function Ctx:get(key, type) end

---Stores a value in the data bucket and logs it. A `flow.secret` makes the key secret, and it stays
---so.
---@param key string
---@param value any nil removes the key.
function Ctx:set(key, value) end

---Whether there is a value.
---@param key string
---@return boolean found
function Ctx:has(key) end

---Writes a line to the log: its arguments through `tostring`, joined by spaces.
---@param ... any
function Ctx:log(...) end

---Finishes the op with an error of kind `error`; never returns.
---@param message string
---@param fields? table<string, any> Further fields of the error, such as `code`.
function Ctx:fail(message, fields) end

---Registers a cleanup, run when the attempt ends, whatever the outcome, last in first out. It may
---wait and use `ctx`. One that raises fails an op that had succeeded. After a stop all cleanups of an
---op together have its `grace`; what is cut then is reported.
---@param fn async fun()
function Ctx:defer(fn) end

---Says how far the op is, to the event log and the terminal.
---@param done number
---@param total? number
function Ctx:progress(done, total) end

---The other end of a task that a script settles itself, once. It doesn't keep a script alive.
---@class flow.Context<T>
---@field task flow.Task<T>
local Context = {}

---Ends the task with a result. Of a task that has settled: an error of kind `usage`.
---@generic T
---@param self flow.Context<T>
---@param value T
function Context:set_result(value) end

---Ends the task with an error. Of a task that has settled: an error of kind `usage`.
---@param error any Any value but nil.
function Context:set_error(error) end

---Cancels the task. Of a task that has settled: an error of kind `usage`.
function Context:cancel() end

---As `set_result`, but answers whether the task was still pending.
---@generic T
---@param self flow.Context<T>
---@param value T
---@return boolean was_pending
function Context:try_set_result(value) end

---As `set_error`, but answers whether the task was still pending.
---@param error any Any value but nil.
---@return boolean was_pending
function Context:try_set_error(error) end

---As `cancel`, but answers whether the task was still pending.
---@return boolean was_pending
function Context:try_cancel() end

---How a group works; made by `flow.dispatcher`.
---@class flow.Dispatcher
---@field input string These are the fields of `flow.DispatcherOptions`, defaults included.
---@field output string?
---@field max_concurrent integer
---@field allow_failure boolean
---@field allow_empty boolean
---@field failures string?
---@field as string?
---@field collect string?
---@field absent any
local Dispatcher = {}

---A value that prints as `<redacted>` everywhere; made by `flow.secret`. Reading a field of it is
---an error.
---@class flow.Secret
local Secret = {}

---A step of a machine; made by `flow.step` and `flow.any_step`.
---@class flow.Step
local Step = {}

---What leads on from a step; made by `flow.on` and `flow.next`.
---@class flow.Handler
local Handler = {}

---What `reduce` decides; made by `flow.continue`, `flow.finish` and `flow.retry`.
---@class flow.Reduction
local Reduction = {}

---Where a machine goes; made by `flow.forward`, `flow.back` and `flow.stay`.
---@class flow.Transition
---@field kind "forward"|"back"|"stay"
---@field step string? The step; nil for `back()` and `stay()`.
local Transition = {}

---The ops that are written in Swift, those that an embedding program has registered included.
---`pairs` goes through them; an unknown name is nil.
---@class flow.Ops
---@field PrintOp fun(message: string|number): flow.Op Logs its message.
---@field SleepOp fun(seconds: number): flow.Op Waits.
---@field ReadFileOp flow.Op Needs `path`, gives `content`.
---@field WriteFileOp flow.Op Needs `path` and `content`. The file is replaced in one step, and stays as it was when that fails.
---@field ExecOp fun(argv: string[], options: flow.ExecOptions?): flow.Op Runs a program, as `flow.exec` does: gives `status`, `stdout` and `stderr`.
---@field [string] flow.Op
local Ops = {}

---What went wrong. `tostring` gives the message with its place: `[publish/CountOp #1] connection refused`;
---`..` takes errors. Values that a script raises become the `cause`; an error of this form that is raised
---again isn't wrapped again.
---@class flow.Error
---@field kind flow.ErrorKind
---@field message string
---@field op string? The op in which it happened.
---@field path string? The flows, items and runs around that op, and its name: `publish/ShardsOp #2/CountOp #1`.
---@field suggestion string? Of a missing key one that nearly fits.
---@field place string? Of a timeout where the op was: `upload.lua:12, in flow.sleep`.
---@field traceback string? Where it was raised; of a timeout where the op was.
---@field cause any What a script has raised: any value, with its identity.
---@field code any The number of the system's error, the status of a program, or what the script has given.
---@field retry boolean? Given by the script: false ends the attempts at the op.
---@field retry_after number? Given by the script: the least number of seconds before the next attempt.
---@field status integer? Of a program that failed or was stopped, with `signal`, `stdout` and `stderr`.
---@field signal integer? The signal that ended a program.
---@field stdout string? What a program that failed or was stopped had written.
---@field stderr string?
---@field [string] any The fields given to `ctx:fail`.
---@operator concat(any): string
local Error = {}

---Makes an op, of a function or of a table of options.
---@param name string Not empty; by convention it ends in `Op`.
---@param run (async fun(ctx: flow.Ctx, ...: any): any)|flow.OpOptions
---@return flow.Op op
function flow.op(name, run) end

---Makes an op around another op, flow or machine: with the same name and declarations, but a policy of
---its own. Its function executes that one by `run`, over the same data bucket, any number of times;
---`run` stores the data it is given before, waits, raises the op's error, and returns a copy of what the
---op gives. Arguments of the new op are those of the one within.
---@param op flow.Op
---@param body async fun(ctx: flow.Ctx, run: async fun(data?: flow.Data): flow.Data): any
---@return flow.Op op
function flow.wrap(op, body) end

---Makes a flow without steps.
---@param name string Not empty.
---@return flow.Flow flow
function flow.new(name) end

---Says how a group works. A plain table does as well where it is used once.
---@param options flow.DispatcherOptions
---@return flow.Dispatcher dispatcher
function flow.dispatcher(options) end

---Makes a value a secret, which prints as `<redacted>` in summaries, events, errors and reports.
---`ctx:get` gives the plain value of a key that was set from one; a line that contains a secret's
---text of 4 bytes or more has it replaced.
---@param value any Any value but nil.
---@return flow.Secret secret
function flow.secret(value) end

---Makes a machine. Unknown, double and unreachable steps are errors here.
---@param definition flow.MachineOptions
---@return flow.Machine machine
function flow.machine(definition) end

---A step of a machine. One without handlers that nothing leads on from is final.
---@param name string
---@param parts flow.StepOptions
---@return flow.Step step
function flow.step(name, parts) end

---What leads on from any step that has no handler of its own for it.
---@param parts flow.Handler[]
---@return flow.Step step
function flow.any_step(parts) end

---Where a step leads on an event, which `emit` gives.
---@param event string
---@param transition flow.Transition
---@return flow.Handler handler
function flow.on(event, transition) end

---Where a step leads without an event.
---@param transition flow.Transition
---@return flow.Handler handler
function flow.next(transition) end

---Goes on to a step.
---@param step string
---@return flow.Transition transition
function flow.forward(step) end

---Goes back to a step of the history, with the present state, and cuts the history there; to a step
---that was never entered it fails.
---@param step? string The one before, without it.
---@return flow.Transition transition
function flow.back(step) end

---Performs the step again.
---@return flow.Transition transition
function flow.stay() end

---Of `reduce`: goes on with a new state.
---@param state any
---@return flow.Reduction reduction
function flow.continue(state) end

---Of `reduce`: ends the machine. The run's `result` is the value.
---@param value any
---@return flow.Reduction reduction
function flow.finish(value) end

---Of `reduce`: takes the previous step's result again, with the state before it was reduced, and
---then that step's transition; at the first step it performs the step again.
---@return flow.Reduction reduction
function flow.retry() end

---Starts a function as a task, up to its first wait. A task that it returns is followed.
---@generic T
---@param fn async fun(...: any): T|flow.Task<T>
---@param ... any Its arguments.
---@return flow.Task<T> task
function flow.spawn(fn, ...) end

---A task that has succeeded.
---@generic T
---@param value T
---@return flow.Task<T> task
function flow.resolved(value) end

---A task that has failed.
---@param error any Any value but nil.
---@return flow.Task<any> task
function flow.failed(error) end

---A task that was cancelled.
---@param reason? string
---@return flow.Task<any> task
function flow.cancelled(reason) end

---A task that succeeds after a time.
---@generic T
---@param seconds number
---@param value? T Its result.
---@return flow.Task<T> task
function flow.with_delay(seconds, value) end

---The other end of a new task, which it settles.
---@return flow.Context<any> context
function flow.context() end

---Waits; everything else goes on meanwhile.
---@async
---@param seconds number
function flow.sleep(seconds) end

---The time in seconds since some moment; it never goes back. On a virtual clock it is virtual too.
---@return number seconds
function flow.now() end

---Succeeds with the list of results, in order, when all have succeeded; ends as the first that
---doesn't. An empty list succeeds at once. The tasks themselves are never cancelled.
---@generic T
---@param tasks flow.Task<T>[]
---@return flow.Task<T[]> task
function flow.when_all_succeed(tasks) end

---Succeeds when all have settled, with `{ n = …, results…, errors = { [i] = error } }`.
---@param tasks flow.Task<any>[]
---@return flow.Task<{ n: integer, errors: table<integer, flow.Error>, [integer]: any }> task
function flow.when_all_finish(tasks) end

---Settles as the first that settles; `index` says which one. An empty list is an error.
---@generic T
---@param tasks flow.Task<T>[]
---@return flow.Task<T> task
function flow.when_any_finish(tasks) end

---Runs a program, without a shell in between. It fails when the program can't be started or, unless
---`check = false`, ends with a status other than 0. Cancelling it sends SIGTERM to the program and
---all it has started, then SIGKILL after a second. In every case the error has `status`, `stdout` and
---`stderr` as they were at the end, and its message ends with the last line of `stderr`.
---@param argv string[] The program and its arguments.
---@param options? flow.ExecOptions
---@return flow.ExecTask task
function flow.exec(argv, options) end

return flow
