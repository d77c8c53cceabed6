internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.fs.watch`: an iterator over changes of files.
struct WatchBindings {
  let host: ScriptHost

  /// `watch(path, options)`: returns the watch as an iterator, and once more as the value that a generic
  /// `for` closes.
  func watch(_ call: LuaCall, _ arguments: Arguments) throws -> LuaAnswer {
    let path = try arguments.path(1)
    let options = try arguments.fileOptions(2, known: ["recursive"])
    let isRecursive = try options.boolean("recursive") ?? false
    return try host.offload(call) { cancellation throws(SystemError) in
      try FileWatchStart(path, isRecursive: isRecursive, cancellation)
    } answer: { call, start in
      let watch = FileWatch(start, on: host.loop)
      let resource = OwnedResource(on: host.loop) { [weak watch] done in
        watch?.close()
        done()
      }
      watch.onClose = { [weak resource] in resource?.noteReleased() }
      host.begin(resource, call.origin)
      let value = try host.vm.value(of: watch, try watchType())
      return call.answer([value, .nil, .nil, value])
    }
  }

  /// The type of watches, made with the first one.
  private func watchType() throws -> LuaObjectType<FileWatch> {
    try host.service { LazyType(try makeWatchType()) }.type
  }

  private func makeWatchType() throws -> LuaObjectType<FileWatch> {
    try host.vm.defineObjectType(
      "watch", of: FileWatch.self,
      methods: [
        "close": LuaMethod(
          host.bind { host, call in try Self(host: host).closeWatch(call, "close") })
      ],
      metamethods: { _ in
        [
          "__call": LuaMethod(host.bind { host, call in try Self(host: host).nextChange(call) }),
          "__close": LuaMethod(
            host.bind { host, call in try Self(host: host).closeWatch(call, "__close") }),
          "__tostring": LuaMethod(
            host.bind { host, call in
              let watch = try Self(host: host).watch(call, "__tostring")
              let state = watch.isClosed ? " (closed)" : ""
              return call.answer(.string("watch: \(watch.path)\(state)"))
            }),
        ]
      })
  }

  /// The watch on which a method was called.
  private func watch(_ call: LuaCall, _ method: String) throws -> FileWatch {
    guard let type = host.existing(LazyType<FileWatch>.self)?.type, let watch = call.object(1, type)
    else {
      throw Arguments(host, call, method: method).wrongSelf("watch")
    }
    if watch.loop !== host.loop {
      throw host.usage(call, "bad use of a watch (it belongs to another event loop)")
    }
    return watch
  }

  private func closeWatch(_ call: LuaCall, _ method: String) throws -> LuaAnswer {
    try watch(call, method).close()
    return call.answer()
  }

  private func nextChange(_ call: LuaCall) throws -> LuaAnswer {
    try call.wait(WatchWait(host, try watch(call, "__call")))
  }
}

/// Waits for the next change.
private final class WatchWait: LuaWait {
  private let host: ScriptHost
  private let watch: FileWatch
  private var number: Int?
  private var outcome: FileWatch.Outcome?

  override var subject: String { "change of a file" }

  init(_ host: ScriptHost, _ watch: FileWatch) {
    self.host = host
    self.watch = watch
    super.init()
    number = watch.wait { [weak self] outcome in
      guard let self else { return }
      self.outcome = outcome
      number = nil
      ready()
    }
  }

  // A host that is closed drops its waits.
  deinit { stop() }

  override func abandon() { stop() }

  override func discard() {
    if case .success(let change?)? = outcome.take() { watch.giveBack(change) }
  }

  private func stop() {
    if let number { watch.stopWaiting(number) }
    number = nil
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    switch outcome.take() {
    case .success(let change?):
      var fields: [(ByteString, LuaValue)] = [
        ("kind", .string(ByteString(change.kind.rawValue))), ("path", .string(change.path)),
        ("directory", .boolean(change.isFolder)),
      ]
      if let origin = change.origin { fields.append(("from", .string(origin))) }
      return call.answer(.reference(try host.vm.makeTable(fields: fields)))
    case .failure(let error): throw host.raise(error, at: call.position)
    case .success(nil), nil: return call.answer(.nil)
    }
  }
}
