---@meta flow

-- The only description of the module: editors read this file, sessions read it for `help` and
-- completion, and scripts/docs generates the reference of the documentation from it.
-- A test compares its names with those of the running module.

---Named operations, flows, machines, runs and tasks.
---
---Every misuse raises an error of kind `usage`: its message begins with the script's `file:line:`
---and names the function, the argument, the expected value and the given one. An unknown field in a
---table of options is such an error. Times are seconds, as numbers; they are finite and not
---negative.
---@class flow
---@field version string The version of flowlua, such as `"1.0.0"`, or `"1.1.0-dev"` before its release: for messages. As texts, `"1.10"` comes before `"1.9"`: `flow.requires` compares.
---@field ops flow.Ops The ops written in Swift, by name.
---@field stopping boolean Whether a signal has asked the script to end, and the function of `flow.on_stop` was called, or is about to be; in workers, too.
---@field checking boolean Whether runs are checked instead of executed, as with `--check` and `--why`.
---@field csv flow.CSV CSV to tables and back; also `require "flow.csv"`.
---@field http flow.HTTP HTTP requests; also `require "flow.http"`.
---@field json flow.JSON JSON to Lua values and back; also `require "flow.json"`.
---@field fs flow.FS Files and folders; also `require "flow.fs"`.
---@field testing flow.Testing Tests of ops on a virtual clock; also `require "flow.testing"`. Only the main script has it.
local flow = {}

---Keys of the data bucket with their values.
---@alias flow.Data table<string, any>

---The type of a value: `"any"`, `"boolean"`, `"string"`, `"number"` (both subtypes), `"integer"`,
---`"float"`, `"table"`, `"function"`, `"userdata"`, `"thread"`, the `__name` of a metatable, or a literal such as `"1|2"`.
---`"file"` is the path of a file that exists: its content counts in kept runs, and travels to ops on other nodes.
---Types are combined as `"T[]"` (a list without holes), `"T?"` (may be absent), `"A|B"`, `"A|nil"`, `"table<K, V>"`, `"{ name: T }"`
---and `"fun()"`. A function is a predicate: it takes the value, and returns whether it is right. The second result of a predicate names the type in the message of a mismatch. The `?` applies to the whole union.
---@alias flow.Type string|fun(value: any): boolean, string?

---A key that an op needs: its type, or a table that has a text for people as well, and the only values if there are few.
---@alias flow.Need flow.Type|{ [1]: flow.Type, [2]: string?, values: (string|integer)[]? }

---The state of a task.
---@alias flow.State
---| "pending" # It hasn't settled yet.
---| "succeeded" # It has a result.
---| "failed" # It has an error.
---| "cancelled" # It has an error of kind `cancelled`.

---The kind of an error.
---@alias flow.ErrorKind
---| "error" # Code raised an error, or `ctx:fail` was called.
---| "insufficient_input" # A required key isn't in the data bucket.
---| "mismatched_input" # A required value has another type.
---| "missing_output" # A declared output wasn't set.
---| "mismatched_output" # A declared output has another type.
---| "timeout" # It took longer than its `timeout`.
---| "cancelled" # It was cancelled.
---| "stalled" # Nothing could make progress any more.
---| "usage" # A function was used wrongly.
---| "http" # The status of a response is a failure.
---| "network" # A request got no whole response.
---| "memory" # The memory limit was reached, or memory ran out.
---| "time" # The time for everything that the script runs is over.
---| "instructions" # The script has executed as many instructions as its host lets it.
---| "crashed" # The nodes that executed it were lost, three times.

---The thread on which an op's function runs: the main thread, or a worker, which is a Lua state of its
---own and runs in parallel; `"remote"` is a worker of any node that has joined (`flow.remote`). Code for
---a worker travels with the upvalues that it has when the op is made. Values are copied in both directions.
---A value that can't travel causes an error that names it. A worker has only the standard globals.
---@alias flow.OpThread "main"|"worker"|"remote"

---The thread on which a continuation runs: from the main loop, at once on completion, or in a worker, here or on
---another node. A worker gets a read-only copy of the settled task. By default it runs at once, and from the main
---loop when continuations are nested more than 20 deep.
---@alias flow.Thread "main"|"immediate"|"worker"|"remote"

---How often an op is tried. Errors of the kinds `error`, `timeout`, `missing_output`, `http`, `network`,
---`memory` and `crashed` are retried, unless their field `retry` is false. Without `when`, `http` is retried for the statuses 408,
---425, 429, 500, 502, 503 and 504 only, and `network` unless a certificate was refused; a request that may
---have reached the server is repeated only if its method is GET, HEAD, PUT, DELETE or OPTIONS, or if it has
---an idempotency key. The data bucket isn't rolled back between attempts.
---@class flow.RetryOptions
---@field attempts integer The number of attempts in all, at least 1.
---@field delay? number|async fun(error: flow.Error, attempt: integer): number Seconds before the second attempt, 0 by default; or a function that returns the delay before each attempt, from the error and the number of the failed attempt.
---@field factor? number The factor by which the delay grows each time; 1 by default.
---@field max_delay? number The longest delay in seconds; unlimited by default, except 60 for `retry_after` of an error.
---@field jitter? number A share of the delay, from 0 to 1, by which it is randomly lengthened or shortened; 0 by default.
---@field when? async fun(error: flow.Error, attempt: integer): boolean Returns whether there is another attempt, if the kind of the error allows one.

---The treatment of an op by a resumed run, if it had started and not finished, or if its code or inputs
---have changed since it finished. `"repeat"` executes it again. `"once"` never does that by itself: the op waits for a
---message of its name, `done`, `again` or `fail`. Not for flows and machines, whose steps are kept one by one.
---@alias flow.Effect "repeat"|"once"

---Which results of an op may come from another run.
---@class flow.CacheOptions
---@field expires? number Seconds after which a result isn't used any more.
---@field version? string|integer Results of another version aren't used.
---@field key? async fun(ctx: flow.Ctx, ...: any): string|number|boolean|table Returns a value that counts instead of the inputs, here and when a run is resumed; `false` for an execution without a cache. It gets a `ctx` like the op's, in which it can read the data, and the bound arguments, and it runs on the main thread before the op. Its error fails the op, as does another result.

---The policy of an op, flow or machine.
---@class flow.CommonPolicyOptions
---@field retry? integer|flow.RetryOptions A number of attempts, or a table of options.
---@field timeout? number Seconds per attempt, greater than 0. It stops an op that waits and one that is busy. Waits for limits and messages don't count.
---@field grace? number Seconds that all cleanups together have after a stop; `math.huge` for no limit. The default is the value of `--grace`, or 30.
---@field undo? async fun(ctx: flow.Ctx, ...: any) Undoes the op after it has succeeded, when its flow fails or is stopped: the last op first, before the final steps. It gets a `ctx` like the op's, whose `error` is the error of the flow, and the bound arguments. A final step is never undone.
---@field thread? flow.OpThread The thread of an op written in Lua.
---@field limit? flow.Limit|string|(flow.Limit|string)[] Limits that it holds while it executes, made by `flow.limit`: the limit, its name, or several. The time that it waits for them isn't a part of its timeout. Ops that it executes and starts don't take them again.

---The policy of one place in a flow. `effect`, `cache`, `memory` and `tags` are only for ops.
---@class flow.PolicyOptions: flow.CommonPolicyOptions
---@field effect? flow.Effect A kept run's treatment of an op that may have been executed already; `"repeat"` by default.
---@field cache? boolean|flow.CacheOptions Whether a kept run may take the result of an execution with equal code and inputs in any other run of the store, instead of executing the op. All that the op reads must be in its `needs`. Not for an op that uses the time or random numbers.
---@field memory? integer|string Bytes, from 64 KiB on, or a text such as `"64M"`, `"512K"` or `"1G"`: what each execution of an op with `thread = "worker"` or `"remote"` may allocate. Beyond that it fails alone, with `not enough memory`. It has a worker for itself.
---@field tags? string|string[] Of an op with `thread = "remote"`: words such as `"gpu"`, at most 4; only nodes that have all of them (`--join URL --tags gpu,big`) execute it. A text may have several, with spaces or commas between them.

---The order of a step of a graph, besides what follows from its data.
---@class flow.GraphOrderOptions
---@field after? flow.Op|string|(flow.Op|string)[] Ops of the graph, or their names, after which it runs; they may be added later.
---@field when? async fun(data: flow.Data): boolean Called once its needs are there. If it returns false or nil, the op is skipped, and so is what needs its keys, unless that need is optional.
---@field buffer? integer How many items of each of its streams may be unread before `ctx:emit` waits, or, of a group, how many results; 64 by default.

---The policy of a step of a graph, and its order.
---@class flow.GraphStepOptions: flow.PolicyOptions, flow.GraphOrderOptions

---The options of a graph.
---@class flow.GraphOptions
---@field max_concurrent? integer How many of its ops, and items of its groups, execute at the same time. Unlimited by default.
---@field keep_going? boolean Whether all that doesn't need a failed op is executed all the same; false by default: the first failure stops the graph.

---The properties that `Op:with` changes.
---@class flow.WithOptions: flow.PolicyOptions
---@field name? string
---@field keys? table<string, string> Other names for keys at this place, by the op's own: with `{ path = "file" }` an op that needs `path` reads `file`. Its code stays as it is.
---@field primary_input? string
---@field primary_output? string

---The full form of an op.
---@class flow.OpOptions: flow.PolicyOptions
---@field run async fun(ctx: flow.Ctx, ...: any): any The function of the op. The op ends when it returns; if it returns a task, the op ends with that task.
---@field doc? string A description; `help` shows it.
---@field needs? table<string, flow.Need> The required data: checked before `run` is called.
---@field gives? table<string, flow.Type> The data that `run` sets: checked after it.
---@field primary_input? string The key under which a group passes an item; by default the only one of `needs`.
---@field primary_output? string The key whose value a group collects; by default the only one of `gives`.

---The options of a group.
---@class flow.DispatcherOptions
---@field input string The key of the list, or of an iterator: a function that returns the next item, and nil at the end. It is called while items execute, at most `max_concurrent` + 1 items ahead of those that have ended, and may wait; its error fails the group. If the key is missing or its value is neither, the group fails with an input error.
---@field output? string The key of the list of results, in the order of the input; nothing is collected without it.
---@field max_concurrent? integer How many items execute at the same time; 3 by default. An item that waits for its next attempt doesn't count.
---@field rate? integer|flow.Rate How many items start in a time, at most: a number per second, or `{ n, per = seconds }`. Further attempts at items count, too. Unlimited by default.
---@field limit? flow.Limit|string|(flow.Limit|string)[] Limits that each item holds while it executes, besides the limits of the op: the limit, its name, or several.
---@field hold_slot? boolean Whether an item that waits for its next attempt counts towards `max_concurrent`; false by default.
---@field label? string|fun(item: any): string? The label that lines, paths, errors and events show of an item after its index, such as `cat.png` of `UploadOp #7 cat.png`. It is the field with this key of an item that is a table, or an item that is itself a string, number or boolean. A function is called for each item when the group starts, shouldn't wait, and returns the label. At most 40 characters; an item of a secret list has no label.
---@field allow_failure? boolean Whether the group continues when an item fails; failed items are left out of the output, unless `absent` is set.
---@field allow_empty? boolean Whether an empty list is allowed. Otherwise it is an error of kind `insufficient_input`.
---@field stop_when? fun(results: any[], n: integer): boolean? Called after each item, with the results so far, in the order in which they came, and with the number of items that have ended; it shouldn't wait. If it returns true, no more items start, those that execute end, and the group succeeds.
---@field ordered? boolean Whether results pass to other steps of a graph in the order of the input, which is the default; with false as items finish. The list of the results is in that order anyway.
---@field failures? string The key of a list of `{ index, input, error }`, one for each failed item.
---@field as? string The key under which each op finds its item; by default the op's primary input.
---@field collect? string The key whose value becomes the result; by default the op's primary output.
---@field absent? any The value in the output for an item without a result, so that results align with items. Such an item has failed, or has succeeded without its optional output. By default both are left out.

---A limit of starts: in any period of `per` seconds (1 by default) at most as many as the number at index 1.
---The first ones may start together.
---@class flow.Rate
---@field [1] integer At least 1.
---@field per? number Greater than 0.

---The options of a continuation.
---@class flow.NextOptions
---@field thread? flow.Thread

---The options of a summary.
---@class flow.SummaryOptions
---@field time? "iso" Shows times as `2026-01-31T16:17:18.123Z` instead of `4:17:18 PM`.
---@field durations? boolean Whether the last line of an op shows its duration in seconds.
---@field full? boolean Whether strings are shown whole, however long. By default 120 characters of each value are shown.

---The options of a machine's drawing.
---@class flow.MachineDotOptions
---@field rankdir? "LR"|"RL"|"TB"|"BT" The direction; `"LR"` by default.
---@field shape? string The shape of a step; `"box"` by default.
---@field strict? boolean Whether several edges of one kind become one; true by default.

---The options of a program.
---@class flow.ExecOptions
---@field stdin? string|"inherit"|"pipe"|{ file: string }|{ bytes: string } The program's input, empty by default: bytes; `"inherit"` for flowlua's own; `"pipe"` for what the script writes with `write`, not for an op; the content of a file. `{ bytes = "pipe" }` is that word as input.
---@field output? string A file for the program's standard output, made or emptied at its start; it grows as the program prints. `stdout` is nil then. Both paths are relative to flowlua's folder, not to `cwd`.
---@field tee? boolean Whether what isn't written to a file also appears in flowlua's output, line by line. While several programs do that, each line begins with the name of the op, or of the program outside of ops. With `capture = false` it isn't kept.
---@field cwd? string Its working directory; by default flowlua's.
---@field env? table<string, string|false> Changes to the environment: a string sets a variable, false removes it.
---@field timeout? number Seconds of real time after which the program is stopped and fails with an error of kind `timeout`.
---@field grace? number Seconds between SIGTERM and SIGKILL when the program is stopped; 1 by default.
---@field check? boolean Whether a status other than 0 is a failure; true by default.
---@field capture? boolean Whether its output is collected, which is the default. Otherwise it is written to flowlua's output.

---The result of a program.
---@class flow.ExecResult
---@field status integer The exit status; 128 plus the number of the signal if a signal ended it.
---@field signal? integer The signal that ended it.
---@field stdout? string All its output, as bytes, except lines that `lines` has returned; nil with `capture = false` or `output`.
---@field stderr? string

---The parameter of `flow.machine`: fields, and a list of `flow.step` and `flow.any_step`.
---@class flow.MachineOptions: flow.CommonPolicyOptions
---@field name string
---@field start string The first step.
---@field emit? async fun(result: any, state: any): string? Returns the event for a step's result, if there is one.
---@field reduce? async fun(state: any, result: any): flow.Reduction Returns the next state. By default a result other than nil becomes the state.
---@field navigate? async fun(transition: flow.Transition, state: any, ctx: flow.Ctx): any Performs all steps, instead of their `run`.
---@field transition? async fun(step: string, result: any, state: any): flow.Transition? Returns the next transition, instead of `on` and `next`; nil ends the machine with its state.
---@field any? "first"|"last" Whether handlers of the any-step take precedence over a step's own; `"last"` by default.
---@field max_transitions? integer The number of transitions after which the machine fails; 10000 by default.
---@field doc? string A description.
---@field needs? table<string, flow.Need> As of an op.
---@field gives? table<string, flow.Type> As of an op.
---@field primary_input? string As of an op.
---@field primary_output? string As of an op.
---@field [integer] flow.Step

---The options of a run.
---@class flow.StartOptions
---@field log_limit? integer The most events that its log keeps, 1,000,000 by default. Beyond it the oldest lines of ops that have succeeded are dropped first; failures, and what still executes, are kept.
---@field keep? boolean Whether the run is kept, as by `flow.keep`, even if others of the script aren't.

---The options of a run of an op or flow.
---@class flow.OpStartOptions: flow.StartOptions
---@field overlap? "join"|"queue"|"replace"|"refuse" The behaviour of the start while another run of the op that has this option runs: return that run; begin when it has ended; cancel it, and begin when it has ended; be an error. Without it the start doesn't count.
---@field key? string Runs with different keys don't count for each other.

---The place where a machine starts, and the options of its run.
---@class flow.MachineStartOptions: flow.StartOptions
---@field at? string The first step; by default the last one of `history`, or else the machine's start.
---@field history? string[] The steps entered so far, as `run.history` and `ctx.history` have them; `flow.back` returns to them. `at` is added unless it is the last of them. Their results aren't known, so `flow.retry` performs the step again.

---A step of a machine: an op or function, and a list of `flow.on` and `flow.next`.
---@class flow.StepOptions
---@field run? flow.Op|async fun(state: any, ctx: flow.Ctx): any An op, flow or machine, which gets the state as its data, or a function.
---@field final? boolean Whether the machine ends after it, even if the any-step has a `flow.next`.
---@field [integer] flow.Handler

---A finding of `flow:check` or `machine:check`.
---@class flow.Finding
---@field severity "error"|"warning"
---@field op string The op or flow that it is about.
---@field message string

---An event of a run.
---@class flow.Event
---@field time number Seconds since the run began.
---@field kind "start"|"finish"|"log"|"set"|"replace"|"remove"|"retry"|"group"|"case"|"transition"|"progress"|"state"|"program_start"|"program"|"request_start"|"request"|"wait"|"undo_start"|"undo"|"kept"
---@field id integer The execution it is about: unique in the run, the same in all its attempts; 0 for the run itself.
---@field parent? integer The `id` of the flow, group or op that encloses the execution.
---@field path string The names of all that encloses the execution, and its own: `publish/ShardsOp #2/CountOp #1`.
---@field run string The id of the run, unique across processes.
---@field lane integer|string The number of the worker that executes it, 0 for the main thread, or the name of a worker of another node: `gpu1/3`. The `start` of an op in a worker has 0 as long as no worker has taken the op; later events of the op have the number.
---@field queued? number Of the `start` of a group's item: when it could have begun, in seconds since the run began.
---@field op string The name of the op it is about.
---@field index? integer The op's index in a group, from 1 on.
---@field label? string The label of the item, if the group has the option `label`.
---@field attempt integer Which attempt at the op, from 1 on.
---@field message? string Of `log` the message; of `finish`, `undo`, `kept`, `retry`, `group`, `case`, `transition` and `state` the line's text; of `program` and its start the command, of `request` and its start method and URL, of `wait` what it was for.
---@field key? string Of `set`, `replace` and `remove`.
---@field value? string The new value or a machine's new state as text; `<redacted>` for a secret.
---@field old_value? string Of `replace` the previous value as text.
---@field done? number Of `progress`.
---@field total? number Of `progress`.
---@field started? number Of `program`, `request`, `wait` and `undo`: when it started, in seconds since the run began; `time` is its end.
---@field outcome? "succeeded"|"failed"|"cancelled" Of `program`, `request`, `wait` and `undo`: how it ended for its task.
---@field method? string Of `request` and `request_start`.
---@field url? string Of `request` and `request_start`: the URL, without user, password and query.
---@field status? integer Of `program` the exit status, of `request` the response's.
---@field signal? integer Of `program`: the signal that has ended it.
---@field pid? integer Of `program` and `program_start`: the number of its process.
---@field bytes? integer Of `request`: the size of the response's body, after decompression.
---@field error? string Of `program`, `request` and `undo`: why it failed.
---@field error_kind? string The kind of that error.

---An op: a named, reusable operation. Calling it binds arguments, which `run` gets after `ctx`; an op
---without arguments is used without a call. Flows and machines are ops too, but take no arguments.
---@class flow.Op
---@field name string Its name in lines and errors.
---@field doc string? Its description.
---@field needs table<string, flow.Need> The data that it needs, as it was written; a copy. A flow has a method of this name instead.
---@field gives table<string, flow.Type> The data that it gives, in the same way.
---@field primary_input string? The key under which a group passes an item: the declared one, or the only one of `needs`.
---@field primary_output string? The key whose value a group collects: the declared one, or the only one of `gives`.
---@field retry flow.RetryOptions? How often it is tried; a copy with all fields.
---@field timeout number? Seconds per attempt.
---@field grace number? Seconds for all cleanups together after a stop.
---@field effect flow.Effect A kept run's treatment of it when it may have been executed already.
---@field thread flow.OpThread The thread on which its function runs.
---@field memory integer? The bytes that each execution may allocate.
---@field limit flow.Limit|flow.Limit[]|nil The limits that it holds while it executes; nil without limits.
---@field tags string? The tags that a node needs to execute it, sorted, with spaces between them; nil without tags.
---@overload fun(...: any): flow.Op
local Op = {}

---Starts the op and runs it up to its first wait.
---@param data? flow.Data The initial data.
---@param options? flow.OpStartOptions
---@return flow.Run run
function Op:start(data, options) end

---Starts the op and waits until it has settled. A failure isn't raised: check `run.ok` or `run.error`. One that nothing
---looks at is reported when the script ends, also the failure of a run within an op.
---@async
---@param data? flow.Data The initial data.
---@param options? flow.OpStartOptions
---@return flow.Run run
function Op:run(data, options) end

---Returns the same op, flow or machine with another name or policy.
---@generic T: flow.Op
---@param self T
---@param options flow.WithOptions
---@return T op
function Op:with(options) end

---A sequence of ops, with cases and groups, over one data bucket. A flow is an op, and a blueprint: it
---can be started many times, also at the same time. The builder's functions change the flow and return
---it; a change doesn't affect runs that have already started. A flow inside a flow works on the same
---bucket.
---@class flow.Flow: flow.Op
local Flow = {}

---Declares the data that it needs; several calls add up. Without an argument it returns a copy of the
---declarations, or, if there are none, the needs of the flow's only op.
---@param needs? table<string, flow.Need>
---@return flow.Flow self
---@overload fun(self: flow.Flow): table<string, flow.Type>
function Flow:needs(needs) end

---Declares the data that it gives: checked when its last step has succeeded. Several calls add up.
---Without an argument it returns the declarations, as `needs` does.
---@param gives? table<string, flow.Type>
---@return flow.Flow self
---@overload fun(self: flow.Flow): table<string, flow.Type>
function Flow:gives(gives) end

---Sets the key under which a group passes an item to the flow, and the key whose value it collects; nil
---leaves a key unchanged. By default these are the only key that the flow needs and the only one that it
---gives, or else those of the flow's only op.
---@param input? string
---@param output? string
---@return flow.Flow self
function Flow:primary(input, output) end

---Sets the initial data; several calls add up. Values passed to `start` or `run` take precedence. Inside
---another flow it fills absent keys only. Tables without a metatable are copied for each run, nested ones
---included, so that no run changes the data of the next one.
---@param data flow.Data
---@return flow.Flow self
function Flow:data(data) end

---Adds an op, flow or machine as the next step, with a policy for this place alone. In a graph it starts when what it
---needs is there.
---@param op flow.Op
---@param policy? flow.PolicyOptions|flow.GraphStepOptions
---@return flow.Flow self
function Flow:add(op, policy) end

---Adds an op that is executed for each item of a list, a few at a time. Each item gets its own bucket,
---which has the item and reads through to the flow's; writes to it aren't logged. Without
---`allow_failure` the first failure cancels the running items, starts no more, and fails the group.
---@param op flow.Op
---@param dispatcher flow.Dispatcher|flow.DispatcherOptions
---@param options? flow.GraphOrderOptions In a graph.
---@return flow.Flow self
function Flow:add_grouped(op, dispatcher, options) end

---Adds several ops that are executed at the same time, over the same data. The first failure stops
---the others.
---@param ... flow.Op
---@return flow.Flow self
function Flow:add_parallel(...) end

---Adds an op that is executed at the end, also after failure, cancellation and timeout. If it fails, a
---flow that had succeeded fails.
---@param op flow.Op
---@param policy? flow.PolicyOptions
---@return flow.Flow self
function Flow:add_finally(op, policy) end

---Begins a branch, up to the next `case`, `otherwise` or `combine`. A branch matches if the key's value
---is this string, or if the predicate returns neither false nor nil; the first match is executed. If none matches and
---there is no `otherwise`, the flow ends early and successfully. Cases don't nest: put a flow inside a
---case instead.
---@param key string|async fun(data: flow.Data): boolean
---@param value? string With a key only.
---@return flow.Flow self
function Flow:case(key, value) end

---Begins the branch that is executed when no case matches.
---@return flow.Flow self
function Flow:otherwise() end

---Joins the branches.
---@return flow.Flow self
function Flow:combine() end

---Registers a function that is called before the first op of each run. It may wait, and several add up.
---Its error fails the run.
---@param fn async fun(run: flow.Run)
---@return flow.Flow self
function Flow:will_start(fn) end

---Registers a function that is called when a run has settled, before anything that waits for the run
---continues. It may wait, and several add up. Its error is reported like an unobserved failure.
---@param fn async fun(run: flow.Run)
---@return flow.Flow self
function Flow:did_finish(fn) end

---Returns an independent flow with the same steps.
---@return flow.Flow copy
function Flow:copy() end

---Finds, without running anything, keys that no op gives, types that don't fit, cases that can't match
---and names without the suffix `Op`.
---@param data? flow.Data The data with which it would be started.
---@return flow.Finding[] findings In the order of the steps; empty if there are none.
function Flow:check(data) end

---Draws it as a graph in the DOT language.
---@return string dot Ends in a newline.
function Flow:dot() end

---Draws it as a graph for Mermaid.
---@return string mermaid Ends in a newline.
function Flow:mermaid() end

---A state machine: steps and the transitions between them. A machine is an op. Started by itself, it gets
---a state, which may be any value; inside a flow its initial state is the bucket's data. If it finishes
---with a table, that table's string keys are set in the bucket.
---@class flow.Machine: flow.Op
local Machine = {}

---Starts the machine with a state and runs it up to its first wait: from its start, or from a saved step.
---@param state? any
---@param options? flow.MachineStartOptions
---@return flow.Run run Its `result` is the value with which the machine finishes.
function Machine:start(state, options) end

---Starts the machine with a state and waits until it has settled.
---@async
---@param state? any
---@param options? flow.MachineStartOptions
---@return flow.Run run
function Machine:run(state, options) end

---Starts the machine after a step whose result comes from elsewhere, such as a server. The history begins
---with that step, unless `options` has a history; then the step is added to it if it isn't the last.
---@param step string
---@param result any
---@param state any
---@param options? { history?: string[] }
---@return flow.Run run
function Machine:continue(step, result, state, options) end

---Returns the transition that would follow a step, and performs nothing: only `reduce`, `emit` and
---`transition` are called. If the machine would fail, such as on an unhandled event, it raises.
---@async
---@param step string
---@param result any
---@param state any The state before the result is reduced.
---@return flow.Transition? transition nil if the machine ends; its `kind` is `"retry"` if `reduce` returned a retry.
---@return any state The new state, or the value with which the machine finishes.
function Machine:transition(step, result, state) end

---Finds steps whose handlers may have been forgotten, and performs nothing: with `reduce`, a step without
---handlers that isn't marked `final = true` is a warning.
---@return flow.Finding[] findings In the order of the steps.
function Machine:check() end

---Draws it as a graph in the DOT language.
---@param options? flow.MachineDotOptions
---@return string dot Ends in a newline.
function Machine:dot(options) end

---Draws it as a graph for Mermaid.
---@return string mermaid Ends in a newline.
function Machine:mermaid() end

---The options of `await`.
---@class flow.AwaitOptions
---@field timeout number? Seconds until the task is stopped.

---Anything running or settled, with one outcome. A task is closable: `local t <close> = flow.spawn(f)`
---cancels it at the end of the scope and waits for its end. An unobserved failure is reported at the end
---of the script. `await`, a continuation, and reading `error`, `state`, `faulted` or `result` observe a
---failure; `wait` doesn't.
---@class flow.Task<T>
---@field state flow.State
---@field completed boolean Whether it has settled.
---@field faulted boolean Whether it has failed.
---@field cancelled boolean Whether it was cancelled.
---@field result T? Of a task that has succeeded.
---@field error flow.Error? Of a task that has failed or was cancelled.
---@field index integer? Of `flow.when_any_finish` the index of the first task to settle, from 1 on; of `when_any_succeeds` the index of the first to succeed.
local Task = {}

---Waits for the result. Raises the task's error when it fails or is cancelled, and the waiter's own
---cancellation, timeout or Ctrl-C. It works anywhere: in the main chunk, an op, a coroutine, and inside `pcall`.
---It also works inside a callback of a C function (`table.sort`, `string.gsub`), if no other wait of that
---kind is in progress. With a `timeout` the task is stopped when the time is over, whatever else waits for it, and an error
---of kind `timeout` is raised once it has ended.
---@async
---@generic T
---@param self flow.Task<T>
---@param options? flow.AwaitOptions
---@return T result
function Task:await(options) end

---Waits until the task has settled or the time is up. Never raises the task's error, only the waiter's
---own.
---@async
---@param timeout? number Seconds.
---@return boolean settled
function Task:wait(timeout) end

---Stops the task and everything it has started. Waits for the task raise an error of kind `cancelled`.
---Code that ignores the stop is closed after a grace period of 1 second.
---@param reason? string
---@return boolean was_pending
function Task:cancel(reason) end

---Calls `fn(task)` when the task has settled, whatever the outcome. The new task has the result of `fn`;
---if `fn` returns a task, the new task settles like that one; an error of `fn` fails it. Here and in the
---four functions below, a thread may be the first argument, instead of `opts`.
---@generic T, U
---@param self flow.Task<T>
---@param fn async fun(task: flow.Task<T>): U|flow.Task<U>
---@param opts? flow.NextOptions
---@return flow.Task<U> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(task: flow.Task<T>): U|flow.Task<U>): flow.Task<U>
function Task:next(fn, opts) end

---Calls `fn(result)` after a success, as `next` does; other outcomes pass through.
---@generic T, U
---@param self flow.Task<T>
---@param fn async fun(result: T): U|flow.Task<U>
---@param opts? flow.NextOptions
---@return flow.Task<U> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(result: T): U|flow.Task<U>): flow.Task<U>
function Task:next_on_success(fn, opts) end

---Calls `fn(error)` after a failure, as `next` does; a success and a cancellation pass through.
---@generic T, U
---@param self flow.Task<T>
---@param fn async fun(error: flow.Error): U|flow.Task<U>
---@param opts? flow.NextOptions
---@return flow.Task<T|U> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(error: flow.Error): U|flow.Task<U>): flow.Task<T|U>
function Task:next_on_error(fn, opts) end

---Calls `fn(task)` at the end of a chain. The new task settles with the same outcome once `fn` has ended;
---an error of `fn` fails it.
---@generic T
---@param self flow.Task<T>
---@param fn async fun(task: flow.Task<T>)
---@param opts? flow.NextOptions
---@return flow.Task<T> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(task: flow.Task<T>)): flow.Task<T>
function Task:finally(fn, opts) end

---Calls `fn(result)` at the end of a chain that has succeeded. The new task settles with the same outcome;
---an error of `fn` fails it.
---@generic T
---@param self flow.Task<T>
---@param fn async fun(result: T)
---@param opts? flow.NextOptions
---@return flow.Task<T> task
---@overload fun(self: flow.Task<T>, thread: flow.Thread, fn: async fun(result: T)): flow.Task<T>
function Task:finally_on_success(fn, opts) end

---A program. Once it has ended, the task has the fields of its result or error; reading one earlier is an
---error.
---@class flow.ExecTask: flow.Task<flow.ExecResult>
---@field pid integer? The number of its process; nil before its start. After its end the system may give the number to another process.
---@field status integer? The exit status; 128 plus the number of the signal if a signal ended it. Nil if the program couldn't be started.
---@field signal integer? The signal that ended it.
---@field stdout string? All its output, as bytes, except lines that `lines` has returned; nil with `capture = false` or `output`.
---@field stderr string?
local ExecTask = {}

---Returns an iterator over the lines of a program as it prints them, for a generic `for`. It waits for each
---line and ends when both outputs have ended. A last line without a newline counts. Lines that the program has printed
---before come first; loops over the same program share its lines.
---
---Lines that the loop returns aren't kept in `stdout` and `stderr`; after a `break` the rest is. A program
---that prints faster than the loop reads waits: at most 256 KiB are kept for the loop, or one line. There is
---no bound while code of the script itself waits for the program (`await`, `wait`, `write`): that code may be what has
---to take the lines.
---@async
---@return async fun(): string?, "stdout"|"stderr"? iterator Returns a line without its newline, and its stream.
function ExecTask:lines() end

---Writes strings and numbers to the input of a program with `stdin = "pipe"`. It waits while the program
---doesn't read and more than 64 KiB are left to write. If the program has closed its input or has ended, it
---raises an error of kind `error` with `name = "EPIPE"`.
---@async
---@param ... string|number
---@return flow.ExecTask self
function ExecTask:write(...) end

---Ends the input of a program with `stdin = "pipe"`, after what was written.
function ExecTask:close_stdin() end

---A started op, flow or machine: a task with data, a log and a summary. It settles when everything it has
---started has ended, cleanups included.
---@class flow.Run: flow.Task<flow.Data>
---@field name string The name of the started op.
---@field id integer A number that is unique in the process.
---@field data flow.Data A copy of its data bucket, with secrets as plain values. Setting a field is an error, because the run would never see the change. `pairs` iterates over it.
---@field ok boolean Whether it has succeeded. Reading it observes a failure.
---@field duration number Seconds from its start to its end, or until now.
---@field finished_early boolean Whether it ended because no case matched.
---@field dropped_events integer How many events its log has dropped because of `log_limit`.
---@field history string[]? Of a machine the steps that it has entered, including the current or last one.
---@field result any Its data, which `data` has too; of a machine the value with which it has finished.
local Run = {}

---Returns the log as text, one line per event: what ran and when, what it wrote and logged, why it failed.
---Line ends and other control characters in texts are escaped, as `\n`.
---@param options? flow.SummaryOptions
---@return string summary Ends in a newline.
function Run:summary(options) end

---Returns the events of its log, in the order in which they happened.
---@return flow.Event[] events
function Run:events() end

---Makes a report of the run in Markdown: its numbers, its problems merged by op and message, what it waited
---for, and a table of its ops. A run that hasn't ended is reported as far as it is.
---@param path? string A file to write, which is replaced in one step; without it the text is returned.
---@return string? report Nothing when a file is written.
function Run:report(path) end

---Makes a page of the run for a browser (HTML): what each op did when, its problems, and what the run waited
---for. The page needs nothing else. A run that hasn't ended is shown as far as it is.
---@param path? string The file to write; without one the text is returned.
---@return string? page Nothing when a file is written.
function Run:timeline(path) end

---Makes a trace of the run in JSON: Chrome trace events, which Perfetto (ui.perfetto.dev) shows. Each attempt,
---program and request is a slice; retries and failures are marks; a counter has the number of ops that are executed.
---@param path? string A file to write, which is replaced in one step; without it the text is returned.
---@return string? trace Nothing when a file is written.
function Run:trace(path) end

---Makes the spans of the run for OpenTelemetry, in OTLP/JSON: one for each execution, attempt, program and
---request. They belong to the trace of `TRACEPARENT`, if that is set.
---@param path? string A file to write; an existing one is replaced in one step, if it is empty or has spans. Without it the text is returned.
---@return string? spans Nothing when a file is written.
function Run:otlp(path) end

---Draws the op, flow or machine in the DOT language, with the outcomes of this run.
---@return string dot Ends in a newline.
function Run:dot() end

---The context of an op: its data, log and cleanups. Using it after the op has finished is an error.
---@class flow.Ctx
---@field name string The op's display name, `UploadOp #3` in a group.
---@field attempt integer The number of this attempt, from 1 on.
---@field index integer? The index of this item in a group, from 1 on.
---@field lane integer|string Where it executes: 0 on the main thread, the number of the worker, or the name of a worker of another node, `gpu1/3`.
---@field key string 26 characters that identify this execution: the same in all its attempts, and in each process that resumes a kept run, until it is undone; for file names, job names and idempotency keys.
---@field run flow.Run The run that the op belongs to.
---@field error flow.Error? In a cleanup the error with which the op is ending, in a final step or an undo its flow's; nil after success.
---@field history string[]? In a function of a machine the steps that it has entered, including the current one; `start` accepts it to continue there.
local Ctx = {}

---Returns a value of the data bucket. If it is missing, the op ends here with an error of kind
---`insufficient_input`; if it has another type, with `mismatched_input`. So the result needs no check.
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

---Stores a value in the data bucket and logs it. A `flow.secret` makes the key secret for good.
---@param key string
---@param value any nil removes the key.
function Ctx:set(key, value) end

---Writes an item of a stream that the op gives: `gives = { rows = "stream<table>" }`. Waits while the slowest reader has as many
---unread items as `buffer` says. Only for ops of graphs.
---@async
---@param key string
---@param item any Of the stream's type, and not nil.
---@return boolean is_read Whether something still reads; otherwise the op may stop.
function Ctx:emit(key, item) end

---Returns whether the data bucket has a value.
---@param key string
---@return boolean found
function Ctx:has(key) end

---Writes a line to the log: its arguments through `tostring`, joined by spaces.
---@param ... any
function Ctx:log(...) end

---Ends the group that the op is executed for, or the flow around it: no more items start, those that execute end, and the
---group succeeds. Not in a worker.
function Ctx:end_group() end

---Finishes the op with an error of kind `error`; never returns.
---@param message string
---@param fields? table<string, any> Further fields of the error, such as `code`.
function Ctx:fail(message, fields) end

---Executes another op, flow or machine over the data of this op, and waits for its end. `data` is added to the data
---before. It has its own policy and lines in the log, ends with this op at the latest, and its failure is raised. Any
---number of times, also of one op.
---@async
---@param op flow.Op
---@param data? flow.Data
---@return flow.Data outputs A copy of what the op declares to give.
function Ctx:execute(op, data) end

---Notes files whose content counts as an input of this op, although they aren't among its needs: the headers in a
---compiler's depfile. When one has changed, was removed or made since then, a kept run and the cache execute the op again.
---They are read when the op has succeeded. Not in workers.
---@param paths string|string[]
function Ctx:depends_on(paths) end

---The options of `ctx:wait_for`.
---@class flow.WaitForOptions
---@field type? string|fun(value: any): boolean, string? The type of the value; a message of another one is dropped.
---@field ask? string The question for a person; without it the name is the question.
---@field timeout? number Seconds until the wait fails, counted from the first process that has waited.

---Waits for a message to the run: from the terminal, from `flowlua --send RUN name=value`, or by `flow.send`. Each message is
---taken once, those of one name in their order; an op that is executed again has those that it had taken. A kept script
---that waits for nothing else and has no terminal ends with status 75. Timeouts of ops and flows stand still meanwhile. Not
---in workers.
---@async
---@param name string
---@param options? flow.WaitForOptions
---@return any value
function Ctx:wait_for(name, options) end

---Registers a cleanup, which runs when the attempt ends, whatever the outcome, last in first out. It may
---wait and use `ctx`. If it raises, an op that had succeeded fails. After a stop all cleanups of an op
---together have its `grace`; a cleanup that takes longer is cut off and reported.
---@param fn async fun()
function Ctx:defer(fn) end

---Reports the op's progress to the event log and the terminal.
---@param done number
---@param total? number
function Ctx:progress(done, total) end

---The context of a task that a script settles itself, once. It doesn't keep a script alive.
---@class flow.Context<T>
---@field task flow.Task<T>
local Context = {}

---Settles the task with a result. Raises an error of kind `usage` if the task has already settled.
---@generic T
---@param self flow.Context<T>
---@param value T
function Context:set_result(value) end

---Settles the task with an error. Raises an error of kind `usage` if the task has already settled.
---@param error any Any value but nil.
function Context:set_error(error) end

---Cancels the task. Raises an error of kind `usage` if the task has already settled.
function Context:cancel() end

---Settles the task as `set_result` does, but returns whether it was still pending.
---@generic T
---@param self flow.Context<T>
---@param value T
---@return boolean was_pending
function Context:try_set_result(value) end

---Settles the task as `set_error` does, but returns whether it was still pending.
---@param error any Any value but nil.
---@return boolean was_pending
function Context:try_set_error(error) end

---Cancels the task as `cancel` does, but returns whether it was still pending.
---@return boolean was_pending
function Context:try_cancel() end

---The settings of a group; made by `flow.dispatcher`.
---@class flow.Dispatcher
---@field input string This and the other fields are those of `flow.DispatcherOptions`, defaults included.
---@field output string?
---@field max_concurrent integer
---@field rate flow.Rate?
---@field hold_slot boolean
---@field limit flow.Limit|flow.Limit[]|nil
---@field stop_when? fun(results: any[], n: integer): boolean?
---@field label? string|fun(item: any): string?
---@field ordered boolean
---@field allow_failure boolean
---@field allow_empty boolean
---@field failures string?
---@field as string?
---@field collect string?
---@field absent any
local Dispatcher = {}

---How many executions use something at a time, and how often they begin to; made by `flow.limit`. It is one for the script
---and its workers, where only its name is known.
---@class flow.Limit
---@field name string
---@field max_concurrent integer|number How many may hold it at a time; `math.huge` for any number.
---@field rate flow.Rate? How many may begin to hold it in a time.
---@field running integer How many hold it now.
---@field waiting integer How many wait for it now.
local Limit = {}

---Calls a function while it holds the limit, and returns its results or raises its error. Waits for the limit, unless an op
---or call around it holds it already.
---@async
---@generic T
---@param fn async fun(...: any): T
---@param ... any The arguments of the function.
---@return T ... All results of the function.
function Limit:use(fn, ...) end

---The size of a limit; at least one of the fields.
---@class flow.LimitOptions
---@field max_concurrent? integer How many may hold it at a time; any number by default.
---@field rate? integer|flow.Rate How many may begin to hold it in a time: a number per second, or `{ n, per = seconds }`. Any number by default.

---A value that prints as `<redacted>` everywhere; made by `flow.secret`. Reading a field of it is
---an error.
---@class flow.Secret
local Secret = {}

---A value that only steers what an op does; made by `flow.setting`.
---@class flow.Setting
---@field name string
---@field value any
local Setting = {}

---A step of a machine; made by `flow.step` and `flow.any_step`.
---@class flow.Step
local Step = {}

---A handler that leaves a step; made by `flow.on` and `flow.next`.
---@class flow.Handler
local Handler = {}

---The decision of `reduce`; made by `flow.continue`, `flow.finish` and `flow.retry`.
---@class flow.Reduction
local Reduction = {}

---A move of a machine to a step; made by `flow.forward`, `flow.back` and `flow.stay`.
---@class flow.Transition
---@field kind "forward"|"back"|"stay"|"retry"
---@field step string? The step; nil for `back()` and `stay()`.
local Transition = {}

---The ops written in Swift, including those that an embedding program has registered. `pairs` iterates
---over them; an unknown name is nil.
---@class flow.Ops
---@field PrintOp fun(message: string|number): flow.Op Logs its message.
---@field SleepOp fun(seconds: number): flow.Op Waits.
---@field ReadFileOp flow.Op Needs `path`, gives `content`.
---@field WriteFileOp flow.Op Needs `path` and `content`. Replaces the file in one step; if that fails, the file is unchanged.
---@field ExecOp fun(argv: string[], options: flow.ExecOptions?): flow.Op Runs a program, as `flow.exec` does: gives `status`, `stdout` and `stderr`.
---@field HTTPOp fun(options: flow.HTTPOpOptions): flow.Op Sends a request: needs the names in braces in `url`, whose values are encoded, and gives `into`.
---@field [string] flow.Op
local Ops = {}

---An error. `tostring` returns the message with its path: `[publish/CountOp #1] connection refused`; `..`
---accepts errors. A value raised by a script becomes the `cause`; raising such an error again doesn't wrap
---it again.
---@class flow.Error
---@field kind flow.ErrorKind
---@field message string
---@field op string? The op in which it happened.
---@field path string? The enclosing flows, items and runs of that op, and its name: `publish/ShardsOp #2/CountOp #1`.
---@field suggestion string? For a missing key, a similar key.
---@field place string? For a timeout, the place where the op was: `upload.lua:12, in flow.sleep`.
---@field traceback string? Where it was raised; for a timeout, where the op was.
---@field cause any The value that a script has raised: any value, with its identity.
---@field code any The number of the system's error, the status of a program or response, or the code given by the script.
---@field name string? The name of the system's error that a function of `flow.fs` raises, such as `"ENOENT"`.
---@field retry boolean? Set by the script: false ends the attempts at the op.
---@field retry_after number? Set by the script or a response: the least number of seconds before the next attempt.
---@field status integer? The status of a program that failed or was stopped, with `signal`, `stdout` and `stderr`; or of a response.
---@field headers table<string, string>? The headers of a response (kind `http`), by names in lower case.
---@field body string? The first 4096 bytes of a response (kind `http`).
---@field phase? "resolve"|"connect"|"tls"|"send"|"wait"|"receive" The phase in which a request failed (kind `network`).
---@field sent boolean? Whether the server may have received the request (kind `network`).
---@field signal integer? The signal that ended a program.
---@field others flow.Error[]? The errors of the other ops of a graph with `keep_going`, or of all tasks of `flow.when_any_succeeds`, in their order.
---@field stdout string? The output of a program that failed or was stopped.
---@field stderr string?
---@field [string] any The fields given to `ctx:fail`.
---@operator concat(any): string
local Error = {}

---Makes an op from a function or a table of options.
---@param name string Not empty; by convention it ends in `Op`.
---@param run (async fun(ctx: flow.Ctx, ...: any): any)|flow.OpOptions
---@return flow.Op op
function flow.op(name, run) end

---The options of `flow.wrap`.
---@class flow.WrapOptions
---@field run async fun(ctx: flow.Ctx, run: (async fun(data?: flow.Data): flow.Data), ...: any): any
---@field needs table<string, flow.Need>? Instead of the needs of the inner op.
---@field gives table<string, flow.Type>? Instead of what the inner op gives.

---Makes an op around another op, flow or machine: with the same name and declarations, but its own policy.
---Its function executes the inner op by `run`, over the same data bucket, any number of times. `run` first
---stores the data passed to it; then it executes the op, waits, raises the op's error, and returns a copy
---of its outputs. The new op takes the arguments of the inner one, and its function gets them after `run`.
---A table has the function as `run`, and declarations that differ from those of the inner op: what the
---function sets for it, and what it makes of its outputs.
---@param op flow.Op
---@param body (async fun(ctx: flow.Ctx, run: (async fun(data?: flow.Data): flow.Data), ...: any): any)|flow.WrapOptions
---@return flow.Op op
function flow.wrap(op, body) end

---Makes a flow without steps.
---@param name string Not empty.
---@return flow.Flow flow
function flow.new(name) end

---Makes a graph without ops: a flow whose ops start when their data is there, and run side by side. An op that needs a key
---runs after the one that gives it. Each op sees what it needs, the initial data that no op gives, and its own changes;
---it sets only what it gives. One op gives a key. A graph has no cases.
---@param name string Not empty.
---@param options? flow.GraphOptions
---@return flow.Flow graph
function flow.graph(name, options) end

---Makes the settings of a group. Where they are used once, a plain table works as well.
---@param options flow.DispatcherOptions
---@return flow.Dispatcher dispatcher
function flow.dispatcher(options) end

---Makes a limit that any number of ops, groups, flows and runs share, or returns the one of this name. They get it in the order
---in which they came.
---
---    local db = flow.limit("db", 4)
---    local QueryOp = flow.op("QueryOp", { limit = db, run = function(ctx) … end })
---@param name string Not empty.
---@param size? integer|flow.LimitOptions How many may hold it at a time, or a table; not needed for one that exists.
---@return flow.Limit limit
function flow.limit(name, size) end

---Makes a value a secret, which prints as `<redacted>` in summaries, events, errors and reports. `ctx:get`
---returns the plain value of a key that was set from one. If a line contains a secret's text of 4 bytes or
---more, the text is replaced. The strings and numbers in a secret table are secrets, too, at any depth; its
---keys aren't.
---@param value any Any value but nil.
---@return flow.Secret secret
function flow.secret(value) end

---Makes a setting: a value that an op reads as `setting.value`, and that doesn't count as its code, such as a budget
---or whether to be verbose. A kept op isn't executed again because it has changed.
---
---    local budget = flow.setting("budget", tonumber(arg[1]) or 2000)
---@param name string
---@param value? boolean|number|string|table
---@return flow.Setting setting
function flow.setting(name, value) end

---Makes a machine. Unknown, duplicate and unreachable steps are errors.
---@param definition flow.MachineOptions
---@return flow.Machine machine
function flow.machine(definition) end

---Makes a step of a machine. A step without any applicable handler is final.
---@param name string
---@param parts flow.StepOptions
---@return flow.Step step
function flow.step(name, parts) end

---Makes the handlers that a step uses where it has none of its own.
---@param parts flow.Handler[]
---@return flow.Step step
function flow.any_step(parts) end

---Makes the handler of an event, which `emit` returns.
---@param event string
---@param transition flow.Transition
---@return flow.Handler handler
function flow.on(event, transition) end

---Makes the handler for a result without an event.
---@param transition flow.Transition
---@return flow.Handler handler
function flow.next(transition) end

---Goes forward to a step.
---@param step string
---@return flow.Transition transition
function flow.forward(step) end

---Goes back to a step of the history, with the current state, and cuts the history there. If that step was
---never entered, the machine fails.
---@param step? string The previous step by default.
---@return flow.Transition transition
function flow.back(step) end

---Performs the step again.
---@return flow.Transition transition
function flow.stay() end

---For `reduce`: continues with a new state.
---@param state any
---@return flow.Reduction reduction
function flow.continue(state) end

---For `reduce`: ends the machine. The run's `result` is the value.
---@param value any
---@return flow.Reduction reduction
function flow.finish(value) end

---For `reduce`: handles the previous step's result again, with the state before it was reduced, and then
---takes that step's transition. At the first step it performs the step again.
---@return flow.Reduction reduction
function flow.retry() end

---Starts a function as a task and runs it up to its first wait. If it returns a task, the new task settles
---like that one.
---@generic T
---@param fn async fun(...: any): T|flow.Task<T>
---@param ... any Its arguments.
---@return flow.Task<T> task
function flow.spawn(fn, ...) end

---Returns a task that has succeeded.
---@generic T
---@param value T
---@return flow.Task<T> task
function flow.resolved(value) end

---Returns a task that has failed.
---@param error any Any value but nil.
---@return flow.Task<any> task
function flow.failed(error) end

---Returns a task that was cancelled.
---@param reason? string
---@return flow.Task<any> task
function flow.cancelled(reason) end

---Returns a task that succeeds after a time.
---@generic T
---@param seconds number
---@param value? T Its result.
---@return flow.Task<T> task
function flow.with_delay(seconds, value) end

---Makes a new task and returns the context that settles it.
---@return flow.Context<any> context
function flow.context() end

---Waits; everything else continues.
---@async
---@param seconds number
function flow.sleep(seconds) end

---Calls a function, which may wait, and returns its results. When the time is over, it is stopped as the timeout of an op
---stops the op, also while it is busy, with everything that it has started; its `<close>` variables are closed, and an error
---of kind `timeout` is raised. If it returns a task, that is awaited within the time, too.
---
---    local page = flow.within(5, function() return flow.http(url):await().body end)
---@async
---@param seconds number
---@param fn async fun(...: any): ...
---@param ... any Its arguments.
---@return any ... Its results.
function flow.within(seconds, fn, ...) end

---Reads standard input as `io.read` does, but everything else continues while it waits. Formats are `"l"` (a
---line, the default), `"L"` (with its newline), `"n"` (a number), `"a"` (everything) or a number of bytes.
---Returns a value for each format, nil at the end of the input. It shares its place with `io.read`. It isn't
---there in workers, and is an error in a session.
---@async
---@param ... string|integer
---@return string|number|nil ...
function flow.read(...) end

---Sends a message to a run, which `ctx:wait_for(name)` of one of its ops takes. It is in the store of a kept run when this
---returns; while another process writes there, it waits, for five seconds at most.
---@async
---@param run flow.Run|string A run of this script, or the id of a kept run.
---@param name string
---@param value any Another value than nil.
function flow.send(run, name, value) end

---An op of a kept run.
---@class flow.KeptOp
---@field path string The names of everything that encloses it, and its own: `publish/UploadOp #7`.
---@field op string
---@field label string?
---@field state "started"|"finished"|"failed"|"stopped"|"undone"
---@field attempts integer
---@field started number Seconds since 1970.
---@field ended number?
---@field duration number? Seconds.
---@field error string?
---@field place string? Where its code is: `ship.lua:31`.
---@field inputs string[] The names of what it was given, or has read.
---@field outputs table<string, any> The values that it set, without secrets.
---@field lines string[] The last 100 lines of its log, if it has ended.
---@field why string? Why it was executed again: `it had failed: no network`.

---Something that a kept run waits for.
---@class flow.KeptWait
---@field name string
---@field ask string? The question.
---@field type string?
---@field since number Seconds since 1970.

---A kept run, also one that is long over.
---@class flow.KeptRun
---@field id string
---@field script string
---@field words string[] The arguments of the script.
---@field state "executing"|"failed"|"unfinished"|"finished"
---@field started number Seconds since 1970.
---@field changed number When it last changed.
---@field processes integer How many processes have executed it.
---@field waits flow.KeptWait[]
---@field store string The folder of its store.
---@field ops flow.KeptOp[] Read when it is first used.
local KeptRun = {}

---Writes the timeline of the run, a page for browsers; returns its text without a path.
---@async
---@param path? string
---@return string? text
function KeptRun:timeline(path) end

---Writes the report of the run, Markdown; returns its text without a path.
---@async
---@param path? string
---@return string? text
function KeptRun:report(path) end

---Executes an op of the run again, as `--only` does: with its present code and the data that it had, in a process of its own. Its new
---result belongs to the run. `ops` is read again. Raises the error of the process if the op fails.
---@async
---@param path string The path of the op: `ship/UploadOp #40`. A name is executed, too, and no op is returned then.
---@return flow.KeptOp? op
function KeptRun:execute(path) end

---The runs of the script's store, the oldest first, or the one with an id.
---@param id? string
---@return flow.KeptRun|flow.KeptRun[] runs
function flow.runs(id) end

---How runs are kept. The command line takes precedence.
---@class flow.KeepOptions
---@field store? string The folder of the store; by default `.flowlua` beside the script.
---@field resume? boolean|string Whether the latest run of the script that hasn't finished is continued, or the id of the run to continue.
---@field within? number Seconds: a run that changed last before that isn't continued, and a new one begins.
---@field trust_code? boolean Whether ops count as unchanged although their code has changed.

---Keeps all runs that the script starts from now on, as `--keep` does. A store has the results of finished ops, and a
---script that is started with `--resume` doesn't execute these ops again. `os.exit` in an op leaves the run
---unfinished, so that the next process executes the op again.
---@param options? flow.KeepOptions
function flow.keep(options) end

---Permissions that `flow.sandbox` leaves to the process.
---@class flow.SandboxOptions
---@field read? string|string[] Files that may be read, and folders with all that is in them. A path must exist.
---@field write? string|string[] The files and folders of which reading, writing, making, renaming and removing are allowed.
---@field net? boolean Whether internet sockets may be made (TCP and UDP).
---@field run? boolean Whether programs may be started. They are in the sandbox, too.

---Restricts the process from now on, and all workers and programs that it starts, by the kernel's means. The script
---keeps the permissions that are named here. It also keeps its folder, libraries, modules, certificates and time zones, the
---temporary folder of `--sandbox`, and the store of kept runs. A further call can only restrict more, as can a call after
---`--sandbox`. The environment and open files remain. Call it first thing: once a worker, a request or, after the first run,
---`--events` has started a thread, it raises `usage`, because the kernel can't restrict that thread any more. In a
---Swift program it is an error.
---@param options? flow.SandboxOptions
function flow.sandbox(options) end

---The server whose nodes execute ops with `thread = "remote"`.
---@class flow.RemoteOptions
---@field url string The URL of a server of NATS with JetStream: `nats://HOST`, `tls://HOST:PORT`, also with `TOKEN@` or `USER:PASSWORD@` before the host; several servers of a cluster with commas between them.
---@field timeout? number Seconds that ops wait while no node can execute them; 60 by default.
---@field insecure? boolean Whether servers of other nodes may be reached without TLS.
---@field shared? string|string[] Absolute paths of folders that are the same on all nodes, such as those of a file server: files in them aren't sent.

---Sets the server whose nodes execute ops with `thread = "remote"`, instead of the one of `--remote` and
---`FLOWLUA_REMOTE`. Nothing is connected before the first such op starts; after that, a call is an error of kind
---`usage`. Fields that aren't given have the values of `--remote-timeout`, `--insecure` and `--remote-shared`.
---@param options flow.RemoteOptions
function flow.remote(options) end

---Returns the seconds since an arbitrary moment; the value never decreases. On a virtual clock the time is
---virtual too.
---@return number seconds
function flow.now() end

---Succeeds with the list of results, in order, when all have succeeded; otherwise settles like the first
---task that doesn't succeed. An empty list succeeds at once. The tasks themselves are never cancelled.
---@generic T
---@param tasks flow.Task<T>[]
---@return flow.Task<T[]> task
function flow.when_all_succeed(tasks) end

---Succeeds when all have settled, with `{ n = …, results…, errors = { [i] = error } }`.
---@param tasks flow.Task<any>[]
---@return flow.Task<{ n: integer, errors: table<integer, flow.Error>, [integer]: any }> task
function flow.when_all_finish(tasks) end

---Settles like the first task that settles; `index` is its index. An empty list is an error.
---@generic T
---@param tasks flow.Task<T>[]
---@return flow.Task<T> task
function flow.when_any_finish(tasks) end

---The options of `flow.when_any_succeeds`.
---@class flow.AnySucceedsOptions
---@field cancel boolean? Whether the other tasks are cancelled after the first success, or when the new task is cancelled.

---Succeeds with the result of the first task that succeeds; `index` is its index. If none does, it fails with an error that
---names the failures, and has all of them in `others`. An empty list is an error.
---@generic T
---@param tasks flow.Task<T>[]
---@param options? flow.AnySucceedsOptions
---@return flow.Task<T> task
function flow.when_any_succeeds(tasks, options) end

---Runs a program without a shell. The task fails if the program can't be started or, unless
---`check = false`, ends with a status other than 0. Cancelling it sends SIGTERM to the program and
---everything it started, then SIGKILL after a second. In every case the error has the final `status`,
---`stdout` and `stderr`, and its message ends with the last line of `stderr`.
---@param argv string[] The program and its arguments.
---@param options? flow.ExecOptions
---@return flow.ExecTask task
function flow.exec(argv, options) end

---The commands of a script.
---@class flow.MainOptions
---@field [integer] flow.Op The ops, flows or machines.
---@field doc? string A text about the script, for its help.

---Makes commands of ops, with their needs as options, and starts the one that the arguments of the script name: see the page
---*Commands and arguments*. It waits for the end; a failure is reported as of any run that nothing observes. `--help`
---prints help; a mistake in the arguments ends the script with the status 2 before anything runs. A single op needs no name.
---In a module, which another script loads, nothing runs.
---@async
---@generic T
---@param commands T Ops in a list, or a single op.
---@return T commands
function flow.main(commands) end

---Calls a function with each event of all runs that `filter` lets pass, in their order, one after another. An event passes
---if its fields have the filter's values, or one of a list of them; without a filter all pass. The loop calls the function in a
---later turn. It may wait, and can't change what happens: it has a copy of the event, and its failure is a warning.
---Events of runs that the function itself starts count, too.
---
---    flow.on_event({ kind = "finish", op = "UploadOp" }, function(event) print(event.message) end)
---@overload fun(fn: async fun(event: flow.Event))
---@param filter table<string, string|number|(string|number)[]> Values of fields of `flow.Event`.
---@param fn async fun(event: flow.Event)
function flow.on_event(filter, fn) end

---Calls a function at the first Ctrl-C, SIGTERM or SIGHUP, instead of cancelling everything: the script ends by itself, and
---`flow.stopping` is true from then on. Everything is cancelled when the grace of `--grace` is over, at a second signal, or
---if the function returns `"cancel"` or fails. A script has one such function; in sessions and Swift programs it is an error.
---@param fn async fun(signal: "SIGINT"|"SIGTERM"|"SIGHUP"): "cancel"?
function flow.on_stop(fn) end

---Returns whether a standard stream is a terminal: false for a file, a pipe, and for output that a Swift program captures.
---@param stream "stdin"|"stdout"|"stderr"|file* `io.stdin`, `io.stdout` or `io.stderr`, or the name of one.
---@return boolean
function flow.is_terminal(stream) end

---Raises an error of kind `usage` unless this is the version of flowlua, or a later one with the same first number:
---`flow.requires "1.2"` demands 1.2, 1.3 or 1.10, not 2.0. For the top of a script or module that uses what 1.2 has added.
---@param version string One to three numbers with dots between them.
function flow.requires(version) end

---Warns that a script uses something that a later version of a library won't have, for the library to call. The
---message has the line that has called the function of the library, or has read the field of its `__index`:
---`flowlua: warning: main.lua:12: uploads.send is deprecated since 2.0; use uploads.put`. Without such a line, for
---example within the function of an op, it has the line of this call. Each line is warned once, on standard error. With
---`FLOWLUA_DEPRECATIONS=error` it is an error of kind `usage` there.
---@param name string The deprecated name, as scripts write it.
---@param advice string The advice what to do instead: `"use uploads.put"`.
---@param since? string The version of the library since when it is deprecated.
function flow.deprecated(name, advice, since) end

return flow
