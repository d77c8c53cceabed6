internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The readable fields of an op: its declarations and its policy. Tables are copies.
extension ScriptHost {
  /// `op.name`, `op.needs`, …
  static func opProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let op = host.op(call, 1) else {
      throw Arguments(host, call, method: "__index").wrongSelf("op")
    }
    switch call.bytes(2) {
    case "name": return try host.answer(call, .bytes(op.nameBytes))
    case "doc": return try host.answer(call, op.docBytes)
    case "needs": return call.answer(.reference(try host.table(of: op.needs)))
    case "gives": return call.answer(.reference(try host.table(of: op.gives)))
    case "primary_input": return try host.answer(call, op.primaryInputBytes)
    case "primary_output": return try host.answer(call, op.primaryOutputBytes)
    case "retry":
      return call.answer(try op.retry.map { .reference(try host.table(of: $0)) } ?? .nil)
    case "timeout": return call.answer(op.timeout.map { .number($0.inSeconds) } ?? .nil)
    case "grace": return call.answer(op.grace.map { .number($0.inSeconds) } ?? .nil)
    case "memory":
      return call.answer(op.memoryLimit.map { .integer(Int64($0.bytes)) } ?? .nil)
    case "effect": return try host.answer(call, .bytes(ByteString(op.effect.rawValue)))
    case "tags": return try host.answer(call, op.tags)
    case "thread": return try host.answer(call, .bytes(ByteString(op.thread.rawValue)))
    default: return call.answer(.nil)
    }
  }

  /// Keys with their types, as in `flow.op`.
  func table(of declarations: [Declaration]) throws -> LuaReference {
    try vm.makeTable(
      fields: declarations.map { declared in
        if let function = declared.type.source as? LuaReference {
          return (declared.nameBytes, .reference(function))
        }
        return (declared.nameBytes, .string(declared.type.nameBytes))
      })
  }

  /// A policy with all of its fields, including the defaults.
  private func table(of retry: RetryPolicy) throws -> LuaReference {
    let rule = retry.rule as? ScriptRetryRule
    var fields: [(ByteString, LuaValue)] = [
      ("attempts", .integer(Int64(retry.attempts))), ("jitter", .number(retry.jitter)),
    ]
    if let delay = rule?.delay {
      fields.append(("delay", .reference(delay)))
    } else {
      fields += [("delay", .number(retry.delay.inSeconds)), ("factor", .number(retry.factor))]
    }
    if let when = rule?.when { fields.append(("when", .reference(when))) }
    if let longest = retry.maxDelay { fields.append(("max_delay", .number(longest.inSeconds))) }
    return try vm.makeTable(fields: fields)
  }

  /// Returns a text to the script, or nil.
  func answer(_ call: LuaCall, _ text: ByteString?) throws -> LuaAnswer {
    try answer(call, text.map { .bytes($0) } ?? .null)
  }
}

extension Op {
  /// The thread on which its function runs.
  fileprivate var thread: OpThread { (body as? WorkerOpBody)?.thread ?? .main }

  /// What a machine has to have that executes it, as text; nil for any machine.
  fileprivate var tags: ByteString? {
    guard let body = body as? WorkerOpBody, body.thread == .remote, !body.tags.isEmpty else {
      return nil
    }
    return body.tags.text
  }
}
