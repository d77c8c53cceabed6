/// What there is to know about the names of the module `flow`, as annotations for LuaLS: the one source
/// for editors, for `help` and for completion.
public enum Annotations {
  /// The text of `flow.d.lua`.
  public static let text = #"""
    ---@meta flow

    ---Named operations, flows, machines, runs and tasks.
    ---@class flow
    ---@field ops flow.Ops The ops that are written in Swift, by name: PrintOp, SleepOp, ReadFileOp, WriteFileOp, ExecOp, and those of the program.
    local flow = {}

    ---@alias flow.State "pending"|"succeeded"|"failed"|"cancelled"
    ---@alias flow.Data table<string, any>

    ---An op: a named, reusable operation. Calling it binds arguments, which `run` gets behind ctx.
    ---@class flow.Op
    ---@field name string What lines and errors call it.
    ---@field doc string? What it does.
    local Op = {}

    ---Starts it alone, up to its first wait.
    ---@param data? flow.Data What the data bucket begins with.
    ---@return flow.Run
    function Op:start(data) end

    ---Starts it alone and waits until it has settled.
    ---@async
    ---@param data? flow.Data What the data bucket begins with.
    ---@return flow.Run
    function Op:run(data) end

    ---The same op with another name or policy.
    ---@param options { name: string?, retry: integer|table?, timeout: number?, thread: string?, primary_input: string?, primary_output: string? }
    ---@return flow.Op
    function Op:with(options) end

    ---Ops in order, with cases and groups, over one data bucket. A flow is an op.
    ---@class flow.Flow: flow.Op
    local Flow = {}

    ---Declares what data it needs; several calls add up.
    ---@param needs table<string, string|fun(value: any): boolean, string?> The type of each key.
    ---@return flow.Flow
    function Flow:needs(needs) end

    ---Gives data to begin with; several calls add up.
    ---@param data flow.Data
    ---@return flow.Flow
    function Flow:data(data) end

    ---Adds an op, flow or machine as the next step.
    ---@param op flow.Op
    ---@param policy? { retry: integer|table?, timeout: number? } For this place alone.
    ---@return flow.Flow
    function Flow:add(op, policy) end

    ---Adds an op that is executed for each item of a list.
    ---@param op flow.Op
    ---@param dispatcher flow.Dispatcher|table See flow.dispatcher.
    ---@return flow.Flow
    function Flow:add_grouped(op, dispatcher) end

    ---Adds several ops that are executed at the same time, over the same data.
    ---@param ... flow.Op
    ---@return flow.Flow
    function Flow:add_parallel(...) end

    ---Adds an op that is executed at the end, whatever has happened.
    ---@param op flow.Op
    ---@param policy? { retry: integer|table?, timeout: number? }
    ---@return flow.Flow
    function Flow:add_finally(op, policy) end

    ---Begins a branch, taken when a key has this string or the predicate says so.
    ---@param key string|fun(data: flow.Data): boolean
    ---@param value? string
    ---@return flow.Flow
    function Flow:case(key, value) end

    ---Begins the branch that is taken when no case matches.
    ---@return flow.Flow
    function Flow:otherwise() end

    ---Joins the branches.
    ---@return flow.Flow
    function Flow:combine() end

    ---Has a function called before the first op of each run; it may wait.
    ---@param fn async fun(run: flow.Run)
    ---@return flow.Flow
    function Flow:will_start(fn) end

    ---Has a function called when a run has settled, before anybody who waits goes on.
    ---@param fn async fun(run: flow.Run)
    ---@return flow.Flow
    function Flow:did_finish(fn) end

    ---A flow of its own with the same steps.
    ---@return flow.Flow
    function Flow:copy() end

    ---Finds keys that nothing gives, types that don't fit and cases that can't match, without running.
    ---@param data? flow.Data
    ---@return { severity: "error"|"warning", op: string, message: string }[]
    function Flow:check(data) end

    ---Draws it as a graph for Graphviz.
    ---@return string
    function Flow:dot() end

    ---Draws it as a graph for Mermaid.
    ---@return string
    function Flow:mermaid() end

    ---A state machine over steps. A machine is an op; it is started with a state.
    ---@class flow.Machine: flow.Op
    local Machine = {}

    ---Enters it behind a step, whose result comes from elsewhere.
    ---@param step string
    ---@param result any
    ---@param state any
    ---@return flow.Run
    function Machine:continue(step, result, state) end

    ---Draws it as a graph for Graphviz.
    ---@param options? { rankdir: "LR"|"RL"|"TB"|"BT"?, shape: string?, strict: boolean? }
    ---@return string
    function Machine:dot(options) end

    ---Draws it as a graph for Mermaid.
    ---@return string
    function Machine:mermaid() end

    ---Something that goes on or has settled, with one outcome.
    ---@class flow.Task
    ---@field state flow.State
    ---@field completed boolean Whether it has settled.
    ---@field faulted boolean Whether it has failed.
    ---@field cancelled boolean Whether it was cancelled.
    ---@field result any Of a task that has succeeded.
    ---@field error flow.Error? Of a task that has failed or was cancelled.
    ---@field index integer? Of when_any_finish: which one was first.
    local Task = {}

    ---Waits for the result; raises the error of a task that fails or is cancelled.
    ---@async
    ---@return any
    function Task:await() end

    ---Waits until it has settled, or the time is up; says whether it has settled.
    ---@async
    ---@param timeout? number Seconds.
    ---@return boolean
    function Task:wait(timeout) end

    ---Asks it, and all that it has started, to stop.
    ---@param reason? string
    ---@return boolean was_pending
    function Task:cancel(reason) end

    ---Goes on with `fn(task)`, whatever the outcome.
    ---@param fn async fun(task: flow.Task): any
    ---@param opts? { thread: "main"|"immediate"|"worker" }
    ---@return flow.Task
    function Task:next(fn, opts) end

    ---Goes on with `fn(result)` after a success.
    ---@param fn async fun(result: any): any
    ---@param opts? { thread: "main"|"immediate"|"worker" }
    ---@return flow.Task
    function Task:next_on_success(fn, opts) end

    ---Goes on with `fn(error)` after a failure.
    ---@param fn async fun(error: flow.Error): any
    ---@param opts? { thread: "main"|"immediate"|"worker" }
    ---@return flow.Task
    function Task:next_on_error(fn, opts) end

    ---Calls `fn(task)` at the end of a chain; the outcome stays what it was.
    ---@param fn async fun(task: flow.Task)
    ---@param opts? { thread: "main"|"immediate"|"worker" }
    ---@return flow.Task
    function Task:finally(fn, opts) end

    ---Calls `fn(result)` at the end of a chain that has succeeded.
    ---@param fn async fun(result: any)
    ---@param opts? { thread: "main"|"immediate"|"worker" }
    ---@return flow.Task
    function Task:finally_on_success(fn, opts) end

    ---A started op, flow or machine: a task with data, a log and a summary.
    ---@class flow.Run: flow.Task
    ---@field name string
    ---@field id integer
    ---@field data flow.Data What is in its data bucket.
    ---@field ok boolean Whether it has succeeded.
    ---@field duration number Seconds.
    ---@field finished_early boolean Whether no case matched.
    local Run = {}

    ---What ran and when, what it wrote and said, and why it failed.
    ---@param options? { time: "iso"?, durations: boolean? }
    ---@return string
    function Run:summary(options) end

    ---The events of its log.
    ---@return { time: number, kind: string, op: string?, index: integer?, attempt: integer? }[]
    function Run:events() end

    ---Draws the flow with what became of it.
    ---@return string
    function Run:dot() end

    ---What an op works with; its functions end with the op.
    ---@class flow.Ctx
    ---@field name string The op's display name.
    ---@field attempt integer Which attempt this is, from 1 on.
    ---@field index integer? Which item of a group this is, from 1 on.
    ---@field run flow.Run
    local Ctx = {}

    ---A value of the data bucket. Without one, or with one of another type, the op finishes here.
    ---@param key string
    ---@param type? string
    ---@return any
    function Ctx:get(key, type) end

    ---Stores a value in the data bucket; nil removes the key.
    ---@param key string
    ---@param value any
    function Ctx:set(key, value) end

    ---Whether there is a value.
    ---@param key string
    ---@return boolean
    function Ctx:has(key) end

    ---Writes a line to the log.
    ---@param ... any
    function Ctx:log(...) end

    ---Finishes the op with an error.
    ---@param message string
    ---@param fields? table Further fields of the error.
    function Ctx:fail(message, fields) end

    ---Registers a cleanup, which runs whatever the outcome.
    ---@param fn async fun()
    function Ctx:defer(fn) end

    ---Says how far the op is.
    ---@param done number
    ---@param total? number
    function Ctx:progress(done, total) end

    ---The other end of a task that a script settles itself.
    ---@class flow.Context
    ---@field task flow.Task
    local Context = {}

    ---Ends the task with a result.
    ---@param value any
    function Context:set_result(value) end

    ---Ends the task with an error.
    ---@param error any
    function Context:set_error(error) end

    ---Cancels the task.
    function Context:cancel() end

    ---As set_result, but answers false when the task has settled already.
    ---@param value any
    ---@return boolean
    function Context:try_set_result(value) end

    ---As set_error, but answers false when the task has settled already.
    ---@param error any
    ---@return boolean
    function Context:try_set_error(error) end

    ---As cancel, but answers false when the task has settled already.
    ---@return boolean
    function Context:try_cancel() end

    ---How a group works; made by flow.dispatcher.
    ---@class flow.Dispatcher

    ---A value that no log shows; made by flow.secret.
    ---@class flow.Secret

    ---A step of a machine, or what leads on from it.
    ---@class flow.Part

    ---Where a machine goes: { kind, step }.
    ---@class flow.Transition
    ---@field kind "forward"|"back"|"stay"
    ---@field step string?

    ---The ops that are written in Swift.
    ---@class flow.Ops: table<string, flow.Op>

    ---What went wrong; `tostring` gives its message.
    ---@class flow.Error
    ---@field kind "error"|"insufficient_input"|"mismatched_input"|"missing_output"|"mismatched_output"|"timeout"|"cancelled"|"stalled"|"usage"
    ---@field message string
    ---@field op string? The op that failed.
    ---@field traceback string?
    ---@field cause any What a script has raised.

    ---Makes an op: of a function, or of a table with `doc`, `needs`, `gives`, `primary_input`,
    ---`primary_output`, `retry`, `timeout`, `thread` and `run`.
    ---@param name string
    ---@param run async fun(ctx: flow.Ctx, ...: any): any | table
    ---@return flow.Op
    function flow.op(name, run) end

    ---Makes a flow without steps.
    ---@param name string
    ---@return flow.Flow
    function flow.new(name) end

    ---Says how a group works: `input`, `output`, `max_concurrent` (3), `allow_failure`, `allow_empty`,
    ---`failures`, `as`, `collect`.
    ---@param options { input: string, output: string?, max_concurrent: integer?, allow_failure: boolean?, allow_empty: boolean?, failures: string?, as: string?, collect: string? }
    ---@return flow.Dispatcher
    function flow.dispatcher(options) end

    ---Makes a value a secret, which every log shows as <redacted>.
    ---@param value string
    ---@return flow.Secret
    function flow.secret(value) end

    ---Makes a machine: `name`, `start`, `emit`, `reduce`, `navigate`, `transition`, `any`,
    ---`max_transitions` and its steps.
    ---@param definition table
    ---@return flow.Machine
    function flow.machine(definition) end

    ---A step of a machine: `run`, and what leads on from it.
    ---@param name string
    ---@param parts table
    ---@return flow.Part
    function flow.step(name, parts) end

    ---What leads on from any step that has no transition of its own.
    ---@param parts table
    ---@return flow.Part
    function flow.any_step(parts) end

    ---Where a step leads on an event.
    ---@param event string
    ---@param transition flow.Transition
    ---@return flow.Part
    function flow.on(event, transition) end

    ---Where a step leads without an event.
    ---@param transition flow.Transition
    ---@return flow.Part
    function flow.next(transition) end

    ---Goes on to a step.
    ---@param step string
    ---@return flow.Transition
    function flow.forward(step) end

    ---Goes back to a step of the history, by default to the one before.
    ---@param step? string
    ---@return flow.Transition
    function flow.back(step) end

    ---Performs the step again.
    ---@return flow.Transition
    function flow.stay() end

    ---Of `reduce`: goes on with a new state.
    ---@param state any
    function flow.continue(state) end

    ---Of `reduce`: ends the machine; the run's result is the value.
    ---@param value any
    function flow.finish(value) end

    ---Of `reduce`: takes the previous step's result again.
    function flow.retry() end

    ---Starts a function as a task, up to its first wait.
    ---@param fn async fun(...: any): any
    ---@param ... any
    ---@return flow.Task
    function flow.spawn(fn, ...) end

    ---A task that has succeeded.
    ---@param value any
    ---@return flow.Task
    function flow.resolved(value) end

    ---A task that has failed.
    ---@param error any
    ---@return flow.Task
    function flow.failed(error) end

    ---A task that was cancelled.
    ---@return flow.Task
    function flow.cancelled() end

    ---A task that succeeds after a time.
    ---@param seconds number
    ---@param value? any Its result.
    ---@return flow.Task
    function flow.with_delay(seconds, value) end

    ---The other end of a new task, which it settles.
    ---@return flow.Context
    function flow.context() end

    ---Waits; all else goes on meanwhile.
    ---@async
    ---@param seconds number
    function flow.sleep(seconds) end

    ---The time in seconds; it never goes back.
    ---@return number
    function flow.now() end

    ---Succeeds with the results in order when all have succeeded; fails as the first that doesn't.
    ---@param tasks flow.Task[]
    ---@return flow.Task
    function flow.when_all_succeed(tasks) end

    ---Succeeds when all have settled: { n, results…, errors = { [i] = error } }.
    ---@param tasks flow.Task[]
    ---@return flow.Task
    function flow.when_all_finish(tasks) end

    ---Settles as the first that settles; `index` says which one.
    ---@param tasks flow.Task[]
    ---@return flow.Task
    function flow.when_any_finish(tasks) end

    ---Runs a program, without a shell; the result is { status, signal, stdout, stderr }.
    ---@param argv string[]
    ---@param options? { stdin: string?, cwd: string?, env: table<string, string|false>?, timeout: number?, check: boolean?, capture: boolean? }
    ---@return flow.Task
    function flow.exec(argv, options) end

    return flow
    """#
}
