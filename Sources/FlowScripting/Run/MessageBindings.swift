internal import FlowEngine
internal import FlowJournal
@_spi(Scripting) internal import LuaVM

/// Messages to runs: `ctx:wait_for` and `flow.send`.
struct MessageBindings {
  let host: ScriptHost

  static func install(in host: ScriptHost) {
    host.define("send") { host, call in
      try Self(host: host).send(Arguments(host, call, "send"))
    }
  }

  /// `ctx:wait_for(name, { type, ask, timeout })`
  func wait(in context: OpContext, _ call: LuaCall) throws -> LuaAnswer {
    if host.isWorker {
      throw host.usage(
        call, "bad use of 'wait_for' (an op in a worker can't wait for messages)")
    }
    let arguments = Arguments(host, call, method: "wait_for")
    let name = try self.name(arguments, 1)
    if !context.mayWaitForMessages {
      throw host.usage(
        call,
        "bad use of 'wait_for' (final steps, cleanups and undos of a kept run can't wait for "
          + "messages: wait in an op before them)")
    }
    var type: FlowValueType?
    var ask: ByteString?
    var timeout: Duration?
    if !arguments.isNil(2) {
      let options = try arguments.options(2, known: ["type", "ask", "timeout"])
      switch options.value("type") {
      case nil: break
      case .string(let text)?:
        type = try host.type(spelled: text) { arguments.wrong(2, "field 'type': \($0)") }
      case .reference(let function)? where function.kind == .function:
        type = host.type(tested: function)
      default: throw options.wrong("type", expected: "type (string or function)")
      }
      ask = try options.string("ask")
      timeout = try options.duration("timeout", orZero: false)
    }
    let wait = context.messageWait(for: name, type: type, ask: ask, timeout: timeout)
    host.begin(wait, call.origin)
    wait.markObserved()
    wait.start()
    if wait.isConcluded { return try TaskBindings(host: host).outcome(call, wait) }
    return try call.wait(
      TaskWait(wait, for: host.waitingTask, deadline: nil) { [unowned host] in
        try TaskBindings(host: host).outcome($0, wait)
      })
  }

  /// The name of a message. Those who send one on the command line write `name=value`.
  private func name(_ arguments: Arguments, _ index: Int) throws -> ByteString {
    let name = try arguments.name(index)
    if name.bytes.contains(where: { $0 == 0 || $0 == UInt8(ascii: "=") }) {
      throw arguments.wrong(
        index, "name without '=' and NUL bytes expected, got '\(name.escapingNUL)'")
    }
    return name
  }

  /// `flow.send(run, name, value)`: to a run of this process, or to a kept one by its id.
  private func send(_ arguments: Arguments) throws -> LuaAnswer {
    let name = try self.name(arguments, 2)
    if arguments.isNil(3) { throw arguments.wrong(3, expected: "value") }
    let value = try arguments.call.engineValue(arguments.place(3))
    let sending: MessageSending
    if let run = arguments.call.object(1, host.types.run) {
      guard let made = run.sending(name, value) else {
        throw bad(arguments.call, .usage("the run '\(run.name)' has ended"))
      }
      sending = made
    } else {
      sending = try self.sending(name, value, arguments)
    }
    host.begin(sending, arguments.call.origin)
    sending.markObserved()
    sending.start()
    if sending.isConcluded { return try answer(arguments.call, sending) }
    return try arguments.call.wait(
      TaskWait(sending, for: host.waitingTask, deadline: nil) {
        try answer($0, sending)
      })
  }

  /// The sending to a kept run, by its id.
  private func sending(
    _ name: ByteString, _ value: FlowValue, _ arguments: Arguments
  ) throws -> MessageSending {
    guard let id = arguments.call.bytes(1), arguments.call.kind(1) == .string else {
      throw arguments.wrong(1, expected: "run or the id of a kept run")
    }
    do {
      guard let folder = host.keeping?.options.folder ?? host.hostKeeping.defaults?().folder
      else { throw FlowError(.error, "there is no store of kept runs") }
      try JournalStore.checkExists(folder)
      let bytes = try ScriptValues(host).encode(value)
      if value.isSecret || host.loop.secrets.occur(in: ByteString(bytes)) {
        throw FlowError(.error, "the value contains the text of a secret, which isn't kept")
      }
      return MessageSending(
        name, on: host.loop, mayPass: { FlowError.from($0).storeProblem == .busy },
        attempt: { [host] in
          try JournalStore(folder: folder, isReadOnly: false, waits: false)
            .send(name, encoded: bytes, to: id)
          host.loop.presentMessages?.deliver()
        })
    } catch {
      throw bad(arguments.call, .from(error))
    }
  }

  private func answer(_ call: LuaCall, _ sending: MessageSending) throws -> LuaAnswer {
    if let error = sending.error {
      throw error.kind == .error ? bad(call, error) : host.raise(error)
    }
    return call.answer()
  }

  private func bad(_ call: LuaCall, _ error: FlowError) -> any Error {
    host.usage(call, "bad use of 'send' (\(error.message))")
  }
}

extension ScriptHost {
  /// Whether the script waits for nothing but messages, and its process ends because of that; it ends then, if no code
  /// of the script is below.
  func endsForMessages() -> Bool {
    guard let center = loop.presentMessages, !center.waits.isEmpty,
      events.onOnlyMessages?(center) == true
    else { return false }
    terminate()
    return true
  }
}
