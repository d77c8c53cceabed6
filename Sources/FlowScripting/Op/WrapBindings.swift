@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The functions that ops around other ops share.
private final class Wrappers: HostService {
  /// Makes the Lua functions of wrapping ops.
  let factory: LuaReference
  /// The ops that are being released; see `release(_:)`.
  private var released: [Unmanaged<Op>] = []

  init(factory: LuaReference) { self.factory = factory }

  /// Releases a wrapped op and, in the same loop, those within it that nothing else holds.
  func release(_ op: Unmanaged<Op>) {
    released.append(op)
    guard released.count == 1 else { return }
    var index = 0
    while index < released.count {
      released[index].release()
      index += 1
    }
    released = []
  }
}

/// `flow.wrap`: ops around other ops.
struct WrapBindings {
  let host: ScriptHost

  func install() {
    host.define("wrap") { host, call in
      let arguments = Arguments(host, call, "wrap")
      // Also a class: then the wrapper is called.
      guard let inner = host.op(call, 1) else { throw arguments.wrong(1, expected: "op") }
      let body: WrappedOpBody
      if call.kind(2) == .table {
        let options = try arguments.options(2, known: ["needs", "gives", "run"])
        guard let function = try options.function("run") else {
          throw options.wrong("run", expected: "function")
        }
        let declare = { (field: ByteString) throws -> [Declaration]? in
          guard let table = try options.table(field) else { return nil }
          return try host.declaration(table) {
            arguments.wrong(2, "field '\(field)': \($0)")
          }
        }
        body = try WrappedOpBody(
          host, function, around: inner, needs: try declare("needs"), gives: try declare("gives"))
      } else {
        body = try WrappedOpBody(host, try arguments.function(2), around: inner)
      }
      return call.answer(body.op(named: inner.name), host.types.op)
    }
  }

  /// The `run` parameter of the op's function: executes the wrapped op over the data of `ctx`.
  fileprivate func runWrapped(_ call: LuaCall) throws -> LuaAnswer {
    let arguments = Arguments(host, call, "run", hidden: 2)
    guard let handle = call.handle(1, host.types.context), let name = call.bytes(2) else {
      throw arguments.wrongSelf("ctx")
    }
    // On this loop only: a paused loop executes nothing.
    guard let context = host.loop.context(slot: handle.slot, generation: handle.generation),
      !context.isCleaningUp, let inner = context.op.body?.inner
    else { throw host.usage(call, "bad use of 'run' (the op around '\(name)' has finished)") }
    return try execute(inner, in: context, try arguments.data(1), call, "run")
  }

  /// Executes an op within another one, over its data, to which `data` is added. Waits, and returns what the op gives.
  func execute(
    _ inner: Op, in context: OpContext, _ data: [(ByteString, FlowValue)], _ call: LuaCall,
    _ function: String
  ) throws -> LuaAnswer {
    for (name, value) in data {
      let key = host.loop.keys.intern(name)
      if context.isGuarded, let error = context.refusal(setting: key) {
        throw host.usage(call, "bad use of '\(function)' (\(error.message))")
      }
      context.set(key, value)
    }
    let task = context.execute(inner, within: host.currentTask?.tasksAround)
    if task.isConcluded { return try answer(call, inner, context, task) }
    host.currentTask?.adopt(executed: task)
    return try call.wait(
      ExecutingWait(task, for: host.waitingTask, deadline: nil) { [unowned host] in
        try Self(host: host).answer($0, inner, context, task)
      })
  }

  /// Raises the error of an op that has been executed, or returns its outputs.
  private func answer(
    _ call: LuaCall, _ op: Op, _ context: OpContext, _ task: AnyFlowTask
  ) throws -> LuaAnswer {
    if let error = try host.error(of: task) { throw host.raise(error) }
    let bucket = context.bucket
    let fields: [(ByteString, LuaValue)] = try op.gives.compactMap { declared in
      guard let value = bucket[declared.name] else { return nil }
      let key = bucket.key(declared.name)
      return (declared.name, try host.luaValue(try host.shared(value, key, in: bucket)))
    }
    return call.answer(.reference(try host.vm.makeTable(fields: fields)))
  }

  /// A Lua function that calls `function` as the body of an op around another: with `ctx`, `run` and the arguments.
  ///
  /// It knows the other op by its name only. If it held the op, each round of Lua's collector would release one of many
  /// that are nested.
  fileprivate func makeWrapper(
    _ function: LuaReference, around name: ByteString
  ) throws -> LuaReference {
    let made = try host.vm.call(wrappers().factory, [.reference(function), .string(name)]).first
    guard case .reference(let wrapper)? = made else {
      throw LuaError(.runtime, "flow.wrap made no function")
    }
    return wrapper
  }

  fileprivate func wrappers() throws -> Wrappers {
    try host.service {
      let maker = try host.vm.loadOwn(Self.wrapperChunk, name: "=[flow]")
      let run = try host.vm.makeFunction(
        host.bind { host, call in try Self(host: host).runWrapped(call) })
      guard case .reference(let made)? = try host.vm.call(maker, [.reference(run)]).first else {
        throw LuaError(.runtime, "flow.wrap made no function")
      }
      return Wrappers(factory: made)
    }
  }

  private static let wrapperChunk: ByteString = """
    local execute = ...
    return function(body, name)
      return function(ctx, ...)
        return body(ctx, function(data) return execute(ctx, name, data) end, ...)
      end
    end
    """
}

/// Waits for an op that this code alone executes: it is stopped with the code, also by a timeout.
private final class ExecutingWait: TaskWait {
  override var stopsTarget: Bool { true }
}

/// The body of an op that wraps another: a function that may execute the other one.
final class WrappedOpBody: OpBody {
  private let host: ScriptHost
  private let function: LuaReference
  /// The op that it wraps.
  var wrapped: Op { held.takeUnretainedValue() }
  // Unmanaged, because a deinitializer can't take a stored op out, and releasing it there would recurse as deep as ops
  // are wrapped. Safe: it was retained for this body, and nothing reads it after the deinitializer.
  private let held: Unmanaged<Op>
  // Kept here: an op may be released after its host was closed.
  private let wrappers: Wrappers
  private let code: ScriptOpBody
  /// The declarations of the op around it; nil for those of the inner one.
  private let needs, gives: [Declaration]?

  init(
    _ host: ScriptHost, _ function: LuaReference, around inner: Op, needs: [Declaration]? = nil,
    gives: [Declaration]? = nil, arguments: LuaReference? = nil, argumentCount: Int = 0
  ) throws {
    self.host = host
    self.function = function
    self.needs = needs
    self.gives = gives
    wrappers = try WrapBindings(host: host).wrappers()
    held = .passRetained(inner)
    code = ScriptOpBody(
      host, try WrapBindings(host: host).makeWrapper(function, around: inner.name),
      arguments: arguments,
      argumentCount: argumentCount, returnsAnything: true)
  }

  deinit { wrappers.release(held) }

  var inner: Op? { wrapped }

  var mayBeBusy: Bool { true }

  /// An op with this body, which has the declarations of the other one, if it has no own ones, and no policy of its own.
  func op(named name: ByteString) -> Op {
    Op(
      name: name, doc: wrapped.doc, needs: needs ?? wrapped.needs,
      gives: gives ?? wrapped.gives,
      primaryInput: needs == nil ? wrapped.primaryInput : nil,
      primaryOutput: gives == nil ? wrapped.primaryOutput : nil, body: self)
  }

  /// An op around the other op with its arguments, which the function gets too, for the op that has this body.
  func wrapping(
    _ inner: Op, in op: Op, arguments: LuaReference?, count: Int
  ) throws -> Op {
    let body = try WrappedOpBody(
      host, function, around: inner, needs: needs, gives: gives, arguments: arguments,
      argumentCount: count)
    // The declarations of an op made by a class depend on the class's arguments.
    if op.complaintOfClass == nil { return op.withBody(body) }
    let name = op.name == wrapped.name ? inner.name : op.name
    return body.op(named: name).with(
      retry: op.retry, timeout: op.timeout, grace: op.grace, undoBody: op.undo, limits: op.limits)
  }

  func start(_ context: OpContext) -> CallState { code.start(context) }

  func codeForm() throws -> CodeForm? {
    let form = try host.codeForm(of: try host.vm.makeTable(values: codeValues))
    return CodeForm(form.bytes, place: host.vm.place(of: function), details: form.details)
  }

  func cancel(_ context: OpContext, _ error: FlowError) { code.cancel(context, error) }

  func interrupt(_ context: OpContext, _ error: FlowError) { code.interrupt(context, error) }
}

extension WrappedOpBody: LuaCode {
  var codeValues: [LuaValue] {
    get throws {
      let arguments: [LuaValue] = code.arguments.map { [.reference($0)] } ?? []
      return [.string("wrap"), .reference(function), .reference(try host.reference(to: wrapped))]
        + arguments
    }
  }
}
