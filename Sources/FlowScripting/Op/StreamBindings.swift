@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Where the code of an op gets the items of a stream: here, or from the main thread.
protocol StreamSource: AnyObject {
  /// Whether code waits for an item.
  var isAwaited: Bool { get }
  /// Whether `next` has a result.
  var hasNext: Bool { get }
  /// The next item; nil at the end.
  func next(_ host: ScriptHost) throws -> FlowValue?
  /// Calls a function once when there is a result; returns what ends the wait.
  func whenNext(_ then: @escaping () -> Void) -> () -> Void
}

/// Of a worker: the streams of its ops, which are on the main thread.
protocol DistantStreams: AnyObject {
  /// The items under a key; nil if the op reads no stream there.
  func source(of key: ByteString, _ context: OpContext) -> (any StreamSource)?
  /// Writes an item, and then calls a function; returns what ends the wait.
  func write(
    _ key: ByteString, _ item: FlowValue, _ context: OpContext, _ host: ScriptHost,
    then: @escaping (DistantWrite) -> Void
  ) throws(FlowError) -> () -> Void
}

/// How the write of an item has ended on the main thread.
enum DistantWrite {
  case done(isRead: Bool)
  /// Why an argument, or the use as a whole, is wrong.
  case refused(ByteString, argument: Int?)
}

/// The items of a stream, for a loop of a script: an object that can be called.
final class ScriptStream {
  fileprivate let source: any StreamSource

  init(_ source: any StreamSource) { self.source = source }
}

/// `ctx:emit`, and what `ctx:get` returns for a stream.
final class StreamBindings: HostService {
  let type: LuaObjectType<ScriptStream>
  /// Set in a worker.
  weak var distant: (any DistantStreams)?

  private init(_ host: ScriptHost) throws {
    type = try host.vm.defineObjectType(
      "stream", of: ScriptStream.self, methods: [:],
      metamethods: { host.bind(Self.metamethods($0)) })
  }

  static func of(_ host: ScriptHost) throws -> StreamBindings {
    try host.service { try StreamBindings(host) }
  }

  static func metamethods(_ type: LuaObjectType<ScriptStream>) -> LuaFields<BoundMethod> {
    ScriptHost.describingMetamethods + [
      "__call": BoundMethod { host, call in
        guard let stream = call.object(1, type) else {
          throw Arguments(host, call, method: "__call").wrongSelf("stream")
        }
        if stream.source.isAwaited {
          throw host.usage(call, "bad use of a stream (another coroutine is waiting in it)")
        }
        if stream.source.hasNext {
          guard let item = try stream.source.next(host) else { return call.answer(.nil) }
          return try host.answer(call, item)
        }
        return try call.wait(ItemWait(stream, host))
      }
    ]
  }

  /// `ctx:get` of a key that the op reads as a stream; nil if it isn't one.
  static func items(
    of found: FlowValue, _ key: DataKey, _ context: OpContext, _ host: ScriptHost, _ call: LuaCall
  ) throws -> LuaAnswer? {
    guard case .opaque = found, let input = context.input(key, found) else { return nil }
    return call.answer(ScriptStream(OwnStream(input, context)), try of(host).type)
  }

  /// `ctx:get` of a key that an op of a worker reads as a stream; nil if it isn't one.
  static func distantItems(
    _ key: DataKey, _ context: OpContext, _ host: ScriptHost, _ call: LuaCall
  ) throws -> LuaAnswer? {
    let bindings = try of(host)
    guard let source = bindings.distant?.source(of: host.loop.keys.name(of: key), context) else {
      return nil
    }
    return call.answer(ScriptStream(source), bindings.type)
  }

  /// `ctx:emit(key, item)` of a scalar or string; declines whatever isn't an item for which there is room.
  static func emit(
    _ key: DataKey, _ context: OpContext, _ call: LuaDirectCall
  ) -> LuaDirectAnswer {
    let item = FlowValue(call.value)
    guard !item.isNull, let output = context.knownOutput(key), output.hasRoom,
      output.mismatch(item) == nil
    else { return call.pass() }
    output.write(item)
    return call.answer(output.isRead)
  }

  /// `ctx:emit(key, item)`.
  static func emit(
    _ key: DataKey, _ context: OpContext, _ arguments: Arguments, _ host: ScriptHost
  ) throws -> LuaAnswer {
    let call = arguments.call
    let item = try call.engineValue(3)
    if item.isNull { throw arguments.wrong(2, expected: "item") }
    if case .bytes = item { try host.checkMemory() }
    if let distant = try of(host).distant {
      return try call.wait(
        DistantWait(distant, host.loop.keys.name(of: key), item, context, arguments))
    }
    let output: StreamOutput
    switch context.output(key) {
    case .success(let found): output = found
    case .failure(let error): throw host.usage(call, "bad use of 'emit' (\(error.message))")
    }
    if let wanted = output.mismatch(item) {
      throw arguments.wrong(
        2,
        "item #\(output.next) of <\(host.loop.keys.name(of: key))>: \(wanted) expected, got \(arguments.got(2))"
      )
    }
    if output.hasRoom {
      output.write(item)
      return call.answer(.boolean(output.isRead))
    }
    return try call.wait(WriteWait(output, item))
  }
}

/// A stream that is read on the thread of its graph.
private final class OwnStream: StreamSource {
  private let input: StreamInput
  private weak var context: OpContext?

  init(_ input: StreamInput, _ context: OpContext) {
    self.input = input
    self.context = context
  }

  var isAwaited: Bool { input.isAwaited }
  var hasNext: Bool { input.hasNext }

  func next(_ host: ScriptHost) throws -> FlowValue? {
    if let open = context {
      if input.isOfStream, open.isOpen { open.notePassedItems() }
      context = nil
    }
    do {
      return try input.next()
    } catch {
      throw host.raise(error)
    }
  }

  func whenNext(_ then: @escaping () -> Void) -> () -> Void { input.whenNext(then) }
}

/// Waits for an item of a stream, or for its end.
private final class ItemWait: LuaWait {
  private let stream: ScriptStream
  private let host: ScriptHost
  private var end: (() -> Void)?

  init(_ stream: ScriptStream, _ host: ScriptHost) {
    self.stream = stream
    self.host = host
    super.init()
    end = stream.source.whenNext { [unowned self] in ready() }
  }

  override var subject: String { "item of a stream" }

  override func abandon() { end?() }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    guard let item = try stream.source.next(host) else { return call.answer(.nil) }
    return try host.answer(call, item)
  }
}

/// Waits until an item is written.
private final class WriteWait: LuaWait {
  private let output: StreamOutput
  private var end: (() -> Void)?

  init(_ output: StreamOutput, _ item: FlowValue) {
    self.output = output
    super.init()
    end = output.write(item) { [unowned self] in ready() }
  }

  override var subject: String { "readers of a stream" }

  override func abandon() { end?() }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    call.answer(.boolean(output.isRead))
  }
}

/// Waits until the main thread has written an item of an op in a worker.
private final class DistantWait: LuaWait {
  private let host: ScriptHost
  private var outcome = DistantWrite.done(isRead: false)
  private var end: (() -> Void)?

  init(
    _ streams: any DistantStreams, _ key: ByteString, _ item: FlowValue, _ context: OpContext,
    _ arguments: Arguments
  ) throws {
    host = arguments.host
    super.init()
    do {
      end = try streams.write(key, item, context, host) { [weak self] in
        self?.outcome = $0
        self?.ready()
      }
    } catch {
      throw host.usage(arguments.call, "bad use of 'emit' (\(error.message))")
    }
  }

  override var subject: String { "readers of a stream" }

  override func abandon() { end?() }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    switch outcome {
    case .done(let isRead): return call.answer(.boolean(isRead))
    case .refused(let why, let argument?):
      throw host.usage(call, "bad argument #\(argument) to 'emit' (\(why))")
    case .refused(let why, nil): throw host.usage(call, "bad use of 'emit' (\(why))")
    }
  }
}
